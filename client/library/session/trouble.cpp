// What is said when something does not come.

#include <fmt/core.h>

#include "client/library/session/session.h"

namespace batchwright {
Error Session::no_grant(const Lane& lane) const {
  std::string why = fmt::format("the daemon at {} is alive and silent", endpoint());
  if (contact_.search().is_away()) {
    why = fmt::format("{}, trying again", contact_.away_text());
  } else if (!lane.reason().empty()) {
    why = fmt::format("the daemon at {} says: {}", endpoint(), lane.reason());
  }
  return {ErrorCode::timed_out,
          fmt::format("no answer to Subscribe for feed \"{}\" within {} ms: {}", lane.feed(),
                      contact_.settings().limit.count(), why)};
}

Error Session::nothing_came(const Lane& lane, const Deadline& deadline, bool asked) const {
  const auto told = [&](const std::string& why) {
    return Error{ErrorCode::timed_out, fmt::format("no batch of feed \"{}\" within {} ms: {}",
                                                   lane.feed(), deadline.limit().count(), why)};
  };
  if (contact_.search().is_away()) {
    return told(fmt::format("{}, trying again", contact_.away_text()));
  }
  const std::size_t held = book_.held(lane.number());
  const std::uint32_t window = lane.window();
  const Position due = lane.progress().position();
  const std::string credits =
      held >= window
          ? fmt::format("all {} credits are out: release a batch", window)
          : fmt::format("{} of {} credits are out; the next batch is of epoch {}, step {}", held,
                        window, due.epoch, due.step);
  const bool answered = !lane.reason().empty();
  const char* alive = asked && !answered ? "does not say why" : "is alive";
  const std::string reason = answered ? fmt::format("; it waits for {}", lane.reason()) : "";
  return told(fmt::format("the daemon at {} {} and {}{}", endpoint(), alive, credits, reason));
}

}  // namespace batchwright
