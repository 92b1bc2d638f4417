#include "daemon/delivery/pulse.h"

#include <fmt/format.h>

namespace batchwright {

std::optional<std::string> Pulse::lost(const Traffic& seen, Time now,
                                       std::chrono::milliseconds limit) {
  if (seen.came != came_ || seen.left - left_at_sign_ >= kLeastFlow) {
    alive_ = now;
    came_ = seen.came;
    left_at_sign_ = seen.left;
  }
  if (!seen.pending || seen.left != left_) {
    flowed_ = now;
    left_ = seen.left;
  }
  const auto seconds = [](std::chrono::milliseconds time) {
    return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
  };
  if (now - flowed_ >= limit) {
    return fmt::format("bytes are on their way to it, and none of them has left for {}",
                       seconds(limit));
  }
  if (now - alive_ >= limit) return fmt::format("no sign of life for {}", seconds(limit));
  return {};
}

}  // namespace batchwright
