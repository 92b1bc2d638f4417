#include "daemon/stats/loop_turns.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright {

void LoopTurns::begin(std::string_view what, std::string_view feed) {
  if (++depth_ == 1) parts_ = 0;
  ++parts_;
  what_.assign(what);
  feed_.assign(feed);
}

LoopTurns::Time::duration LoopTurns::end_at(Time now) {
  const Time::duration took = now - began_;
  if (now - period_began_ >= kPeriod) {
    longest_before_ = now - period_began_ < 2 * kPeriod ? longest_ : Time::duration{};
    longest_ = {};
    period_began_ = now;
  }
  longest_ = std::max(longest_, took);
  return took;
}

std::string LoopTurns::describe() const {
  return fmt::format("{}{}{}{}", what_, feed_.empty() ? "" : " of feed ", feed_,
                     parts_ > 1 ? fmt::format(", the last of {} parts", parts_) : "");
}

std::chrono::duration<double> LoopTurns::longest(Time now) const {
  const Time::duration age = now - period_began_;
  if (age < kPeriod) return std::max(longest_, longest_before_);
  return age < 2 * kPeriod ? longest_ : Time::duration{};
}

}  // namespace batchwright
