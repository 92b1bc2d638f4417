// What Session says when something does not come.

#include <unistd.h>

#include "client/library/reach.h"
#include "client/library/session/session.h"

namespace batchwright {
namespace {

constexpr std::string_view kIpc = "ipc://";

std::string in_ms(std::chrono::milliseconds limit) {
  return "within " + std::to_string(limit.count()) + " ms";
}

}  // namespace

Error Session::no_welcome() const {
  if (const auto error = barred(endpoint_)) return *error;
  std::string why = "no daemon is there, or none answers";
  if (endpoint_.starts_with(kIpc)) {
    const std::string path = endpoint_.substr(kIpc.size());
    why = access(path.c_str(), F_OK) == 0 ? "the socket is there, but no daemon answers on it"
                                          : "there is no such socket; is batchwrightd running?";
  }
  return {ErrorCode::timed_out,
          "no answer from " + endpoint_ + " " + in_ms(settings_.limit) + ": " + why + about_keys()};
}

/// A daemon never answers a client with the wrong keys.
std::string Session::about_keys() const {
  if (settings_.keys) {
    return "; or the keys are wrong: the daemon's own, or it does not know public_key, or it uses "
           "no CURVE";
  }
  return endpoint_.starts_with(kIpc) ? "" : "; or it wants CURVE keys, and none were given";
}

Error Session::no_grant(const Lane& lane) const {
  const std::string what =
      "no answer to Subscribe for feed \"" + lane.feed() + "\" " + in_ms(settings_.limit) + ": ";
  return {
      ErrorCode::timed_out,
      what + (away_                   ? away_text() + ", trying again"
              : lane.reason().empty() ? "the daemon at " + endpoint_ + " is alive and silent"
                                      : "the daemon at " + endpoint_ + " says: " + lane.reason())};
}

Error Session::nothing_came(const Lane& lane, const Deadline& deadline, bool asked) const {
  const std::string what =
      "no batch of feed \"" + lane.feed() + "\" " + in_ms(deadline.limit()) + ": ";
  if (away_) return {ErrorCode::timed_out, what + away_text() + ", trying again"};
  const std::size_t held = book_.held(lane.number());
  const std::uint32_t window = lane.window();
  const Position due = lane.progress().position();
  const std::string credits =
      held >= window ? "all " + std::to_string(window) + " credits are out: release a batch"
                     : std::to_string(held) + " of " + std::to_string(window) +
                           " credits are out; the next batch is of epoch " +
                           std::to_string(due.epoch) + ", step " + std::to_string(due.step);
  const bool answered = !lane.reason().empty();
  const std::string daemon = "the daemon at " + endpoint_;
  const std::string alive =
      asked && !answered ? daemon + " does not say why" : daemon + " is alive";
  return {ErrorCode::timed_out,
          what + alive + " and " + credits + (answered ? "; it says: " + lane.reason() : "")};
}

std::string Session::away_text() const {
  const auto gone = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - away_->since);
  const auto error = barred(endpoint_);
  return "the daemon at " + endpoint_ + " has been gone for " + std::to_string(gone.count()) +
         " s (" + away_->why + ")" + (error ? "; " + error->message : "");
}

Error Session::daemon_gone(const std::string& how) const {
  return {ErrorCode::disconnected,
          "the daemon at " + endpoint_ + " " + how +
              "; batches that are held stay valid until they are released"};
}

}  // namespace batchwright
