#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace batchwright {

/// How long the turns of the event loop take, and what the one at hand does. A turn is one call of
/// the loop, from its begin to its end: while it lasts, no client is served.
/// Threads: one at a time. Time is an argument.
class LoopTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// From here on a turn is worth a line of the log.
  static constexpr std::chrono::milliseconds kLong{20};
  /// How far back longest() looks at least, and half of how far at most.
  static constexpr std::chrono::minutes kPeriod{1};

  /// A turn begins, or a part of the one at hand.
  void begin(std::string_view what, std::string_view feed);
  /// Whether the begin that came last is that of a turn; then begin_at() is due.
  bool is_outermost() const { return depth_ == 1; }
  void begin_at(Time now) { began_ = now; }
  /// A part of a turn ends. Whether with it the turn does; then end_at() is due.
  bool end() { return --depth_ == 0; }
  /// How long the turn took.
  Time::duration end_at(Time now);

  /// What the turn did last.
  std::string describe() const;
  /// The longest turn that ended in the last minute, or in the one before it.
  std::chrono::duration<double> longest(Time now) const;

 private:
  std::size_t depth_ = 0;
  std::size_t parts_ = 0;  ///< Of the turn at hand.
  std::string what_;       ///< What its last part does, and for which feed. Their memory is used
  std::string feed_;       ///< again: nothing is allocated in most turns.
  Time began_{};
  Time period_began_{};
  Time::duration longest_{};         ///< Of the period at hand.
  Time::duration longest_before_{};  ///< Of the period before.
};

}  // namespace batchwright
