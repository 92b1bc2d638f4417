#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "tests/simulation/world/marks.h"

namespace batchwright::simulation {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

/// What must hold does not. Ends the run.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All that a run draws, from its seed alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_.next(); }
  /// From 0 to `bound` - 1.
  std::uint32_t below(std::uint64_t bound) { return random_.below(bound); }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + below(std::uint64_t{most} - least + 1);
  }
  bool percent(std::uint32_t share) { return below(100) < share; }
  /// Short times are as likely as long ones: each doubling from `least` on has the same share.
  Duration time(Duration least, Duration most);
  template <class Value>
  const Value& pick(const std::vector<Value>& from) {
    return from[below(from.size())];
  }

 private:
  SplitMix64 random_;
};

/// A virtual clock, and what happens when: in the order of times, and of what is due at one time in
/// the order in which it was put here. Nothing else decides what comes next, so a seed gives the
/// same run each time. Threads: one.
class World {
 public:
  using Thing = std::function<void()>;

  World(std::uint64_t seed, Marks& marks, bool tells_all)
      : dice(seed), marks_(marks), tells_all_(tells_all) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Time now() const { return now_; }
  const Time* clock() const { return &now_; }
  void after(Duration delay, Thing thing) {
    things_.emplace(std::pair(now_ + delay, ++count_), std::move(thing));
  }
  /// The next thing that happens until then; false when there is none.
  bool step(Time end);
  /// Virtual time since the beginning.
  Duration passed() const { return now_ - kBegin; }
  std::uint64_t things_done() const { return done_; }

  /// For the last lines that a failed run prints.
  void note(std::string line);
  /// Whether every message is to be noted as well: a run that failed is told again so.
  bool tells_all() const { return tells_all_; }
  void sometimes(Mark mark) { marks_.reach(mark); }
  [[noreturn]] void fail(const std::string& what) const { throw Violation(what); }
  /// For what may not throw: the run fails with the next step.
  void fail_later(std::string what) {
    if (!failure_) failure_ = std::move(what);
  }
  /// The last things that happened, a line each.
  std::string last_lines() const;

  Dice dice;

 private:
  static constexpr Time kBegin{std::chrono::hours(1)};
  static constexpr std::size_t kLines = 100;

  Marks& marks_;
  const bool tells_all_;
  Time now_ = kBegin;
  std::uint64_t count_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t at_once_ = 0;  ///< Of these, since time has passed.
  std::map<std::pair<Time, std::uint64_t>, Thing> things_;
  std::optional<std::string> failure_;
  std::deque<std::pair<Time, std::string>> lines_;
};

}  // namespace batchwright::simulation
