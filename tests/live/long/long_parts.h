#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tests/live/long/long_run.h"

namespace batchwright::test {

/// xorshift64*: fast, and the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  std::uint64_t below(std::uint64_t count) {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    return ((state_ * 0x2545F4914F6CDD1DU) >> 33U) % count;
  }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool percent(std::uint64_t share) { return below(100) < share; }
  bool once_in(std::uint64_t times) { return below(times) == 0; }

 private:
  std::uint64_t state_;
};

/// A version, and the line of training that it is of.
struct MadeBy {
  std::uint64_t version = 0;
  std::size_t line = 0;
};

/// The versions that trainers announced, and the lines that restores have begun.
struct Lines {
  std::uint64_t current = 0;
  std::vector<std::uint64_t> begins{0};  ///< The version that each begins with.
  std::vector<std::uint64_t> tops{0};    ///< The highest that each has reached.

  std::size_t last() const { return begins.size() - 1; }
  void advance(const LiveAdvance& to) {
    if (to.restored && !to.replays && to.version < current) {
      begins.push_back(to.version);
      tops.push_back(to.version);
    }
    current = to.restored ? to.version : std::max(current, to.version);
    tops.back() = std::max(tops.back(), current);
  }
  std::size_t last_with(std::uint64_t version) const {
    std::size_t line = last();
    while (tops[line] < version) --line;
    return line;
  }
  /// How far the model `to` is from the one that made a sequence, along the way of training.
  std::uint64_t distance(const MadeBy& from, const MadeBy& to) const {
    std::uint64_t version = from.version;
    std::uint64_t back = 0;
    for (std::size_t line = from.line + 1; line <= to.line; ++line) {
      if (begins[line] >= version) continue;
      back += version - begins[line];
      version = begins[line];
    }
    return back + (to.version > version ? to.version - version : 0);
  }
};

struct Sequence {
  MadeBy by;
  std::uint32_t length = 0;
};

struct Claimed {
  MadeBy by;
  std::uint64_t until_ms = 0;
};

struct Maker {
  bool claims = false;
  std::uint64_t speed = 1;  ///< Milliseconds a frame.
  std::uint64_t life = 0;   ///< What was due in an earlier one is not done.
  std::uint64_t next = 0;   ///< Number.
  std::uint64_t left = 0;   ///< Of the claim or group at hand.
  std::uint64_t group = 0;
  std::uint64_t version = 0;  ///< That it makes them with.
  std::uint32_t length = 0;   ///< Of the one at hand.
  std::deque<Claimed> claimed;
  std::optional<std::uint64_t> asked;  ///< Event of the claim that waits.
  std::vector<Sequence> sequences;     ///< By number, the last kRemembered.

  /// A push uses its oldest claim of the version, or else its oldest. Returns the version's line.
  std::size_t use_claim(const Lines& lines, std::uint64_t now_ms) {
    std::erase_if(claimed, [now_ms](const Claimed& each) { return each.until_ms <= now_ms; });
    const auto used = std::find_if(claimed.begin(), claimed.end(), [this](const Claimed& each) {
      return each.by.version == version;
    });
    const bool has_it = used != claimed.end();
    const std::size_t line = has_it ? used->by.line : lines.last_with(version);
    if (!claimed.empty()) claimed.erase(has_it ? used : claimed.begin());
    return line;
  }
};

/// A step that was cut, and by which line of training.
struct CutStep {
  LiveStep step;
  std::size_t line = 0;
};

struct Looper {
  std::uint32_t prefetch = 0;
  bool announces = false;
  std::uint64_t work_ms = 1;
  std::optional<std::uint64_t> next;   ///< Step that it takes next, once it has had one.
  std::optional<std::uint64_t> asked;  ///< Event of the take that waits.
  bool waits = false;                  ///< Its loop does.
  std::deque<std::uint64_t> ready;     ///< Steps that its client has.
  std::optional<std::uint64_t> at_hand;
  std::deque<std::uint64_t> kept;  ///< Versions of the steps that it had, the last ones.
  std::uint64_t again = 0;         ///< Of those, how many it takes once more.
};

/// What a producer or trainer does next.
struct Due {
  std::uint64_t at_ms = 0;
  std::uint64_t order = 0;
  std::uint64_t life = 0;
  std::uint32_t who = 0;  ///< A producer; after those a trainer.
  bool operator>(const Due& other) const {
    return at_ms != other.at_ms ? at_ms > other.at_ms : order > other.order;
  }
};

inline constexpr std::uint64_t kLongest = 100;  ///< Frames; the shortest has one.

/// The settings of a pool, and how many sequences a claim or a group has.
std::pair<LiveSettings, std::uint64_t> draw_settings(const LongRun& run, Dice& dice);

}  // namespace batchwright::test
