// What is said when something does not come.

#include <unistd.h>

#include "client/library/reach.h"
#include "client/library/session/session.h"

namespace batchwright {
namespace {

std::string in_ms(std::chrono::milliseconds limit) {
  return "within " + std::to_string(limit.count()) + " ms";
}

}  // namespace

Error Session::no_grant(const Lane& lane) const {
  const std::string what = "no answer to Subscribe for feed \"" + lane.feed() + "\" " +
                           in_ms(contact_.settings().limit) + ": ";
  const std::string daemon = "the daemon at " + endpoint();
  return {ErrorCode::timed_out,
          what + (contact_.search().is_away() ? contact_.away_text() + ", trying again"
                  : lane.reason().empty()     ? daemon + " is alive and silent"
                                              : daemon + " says: " + lane.reason())};
}

Error Session::nothing_came(const Lane& lane, const Deadline& deadline, bool asked) const {
  const std::string what =
      "no batch of feed \"" + lane.feed() + "\" " + in_ms(deadline.limit()) + ": ";
  if (contact_.search().is_away()) {
    return {ErrorCode::timed_out, what + contact_.away_text() + ", trying again"};
  }
  const std::size_t held = book_.held(lane.number());
  const std::uint32_t window = lane.window();
  const Position due = lane.progress().position();
  const std::string credits =
      held >= window ? "all " + std::to_string(window) + " credits are out: release a batch"
                     : std::to_string(held) + " of " + std::to_string(window) +
                           " credits are out; the next batch is of epoch " +
                           std::to_string(due.epoch) + ", step " + std::to_string(due.step);
  const bool answered = !lane.reason().empty();
  const std::string daemon = "the daemon at " + endpoint();
  const std::string alive =
      asked && !answered ? daemon + " does not say why" : daemon + " is alive";
  return {ErrorCode::timed_out,
          what + alive + " and " + credits + (answered ? "; it says: " + lane.reason() : "")};
}

}  // namespace batchwright
