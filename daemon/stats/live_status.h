#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

// How a live feed stands: its pool, its steps and its producers.

/// Why a sequence that was accepted came to no trainer.
enum class LiveDrop : std::uint8_t {
  stale,       ///< Its version was too old.
  late,        ///< Its group had been cut, closed or dropped before it came.
  incomplete,  ///< Its group was closed without its other members.
  abandoned,   ///< Its producer asked for it.
  count
};

inline constexpr std::size_t kLiveDrops = static_cast<std::size_t>(LiveDrop::count);
inline constexpr std::array kLiveDropNames{"stale", "late", "incomplete", "abandoned"};
static_assert(kLiveDropNames.size() == kLiveDrops);

/// How many rows of steps were how stale: the distance of their version from that of the cut.
/// Threads: one at a time.
class StalenessHistogram {
 public:
  /// The largest staleness of each range but the last, which has none.
  static constexpr std::array<std::uint64_t, 10> kBounds{0, 1, 2, 3, 4, 6, 8, 16, 32, 64};
  static constexpr std::size_t kRanges = kBounds.size() + 1;

  void add(std::uint64_t staleness) {
    std::size_t range = 0;
    while (range < kBounds.size() && staleness > kBounds[range]) ++range;
    ++rows_[range];
    sum_ += staleness;
  }
  std::uint64_t in_range(std::size_t range) const { return rows_.at(range); }
  std::uint64_t rows() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : rows_) sum += each;
    return sum;
  }
  std::uint64_t sum() const { return sum_; }  ///< Of the staleness of all rows.

 private:
  std::array<std::uint64_t, kRanges> rows_{};
  std::uint64_t sum_ = 0;
};

/// What producers have waited, in seconds of each of them. A push and a claim of one producer may
/// wait at the same time.
struct ProducerWaits {
  double connected = 0.0;  ///< How long producers were connected: what the others are shares of.
  double room = 0.0;       ///< Pushes, for room in the pool.
  double claims_pool = 0.0;
  double claims_staleness = 0.0;  ///< For a newer version.
  double claims_trainer = 0.0;    ///< For the first trainer to ask, or to announce a version.

  /// For room: pushes, and claims.
  double for_room() const { return room + claims_pool; }
  double claims() const { return claims_pool + claims_staleness + claims_trainer; }
  ProducerWaits& operator-=(const ProducerWaits& other) {
    connected -= other.connected;
    room -= other.room;
    claims_pool -= other.claims_pool;
    claims_staleness -= other.claims_staleness;
    claims_trainer -= other.claims_trainer;
    return *this;
  }
};

/// What a live feed has counted since it was opened: all of it only grows.
struct LiveCounts {
  std::uint64_t accepted = 0;  ///< Sequences.
  std::uint64_t accepted_frames = 0;
  std::uint64_t accepted_bytes = 0;
  std::array<std::uint64_t, kLiveDrops> dropped{};  ///< Sequences, by LiveDrop.
  std::uint64_t dropped_frames = 0;
  std::uint64_t rows_zeroed = 0;  ///< Rows of steps that got weight 0 for their staleness.
  std::uint64_t duplicates = 0;   ///< Sequences that were offered again.
  std::uint64_t pushes_timed_out = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t claims_timed_out = 0;
  StalenessHistogram staleness;  ///< Of the rows of steps.
  ProducerWaits waited;

  std::uint64_t dropped_in_all() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : dropped) sum += each;
    return sum;
  }
  /// Empty: none was accepted, or dropped.
  std::optional<double> mean_accepted_length() const { return mean(accepted_frames, accepted); }
  std::optional<double> mean_dropped_length() const {
    return mean(dropped_frames, dropped_in_all());
  }

 private:
  static std::optional<double> mean(std::uint64_t frames, std::uint64_t sequences) {
    if (sequences == 0) return {};
    return static_cast<double>(frames) / static_cast<double>(sequences);
  }
};

/// A producer of a live feed.
struct ProducerStatus {
  std::string name;        ///< Empty: it has given itself none.
  bool connected = false;  ///< Otherwise session and client are those that it had last.
  SessionId session;
  std::string client;  ///< The program.
  std::uint32_t pid = 0;
  std::uint64_t accepted = 0;  ///< Sequences.
  std::uint64_t accepted_bytes = 0;
  std::uint64_t waiting = 0;  ///< Of them, those that are in no step so far.
  std::uint64_t dropped = 0;  ///< Of them, as too stale.
  std::uint64_t abandoned = 0;
  std::uint64_t claimed = 0;     ///< Sequences that it may push without waiting.
  std::uint64_t held_bytes = 0;  ///< Of its sequences that are kept: its credit in use.
  std::uint64_t area_bytes = 0;  ///< Its credit; 0: it has no area.
  /// Since its last sequence was accepted; empty: none was.
  std::optional<std::chrono::duration<double>> pushed_ago = {};
  std::string_view waits_for = {};  ///< "room", "claim" or nothing.
};

/// All that is shown of a live feed, beside what every feed has.
struct LiveStatus {
  /// Producers in the list, at most.
  static constexpr std::size_t kMostProducers = 64;
  using Seconds = std::chrono::duration<double>;

  LiveCounts counts;

  std::uint64_t version = 0;
  std::optional<Seconds> version_ago;  ///< Since it was announced; empty: none was.
  std::optional<std::uint64_t> max_staleness;

  std::uint64_t steps = 0;              ///< That were cut.
  std::uint64_t steps_kept = 0;         ///< Of them, those that can still be assembled.
  std::uint64_t steps_ahead = 0;        ///< Of them, those that may not be trained yet.
  std::string_view step_unit;           ///< "sequences", "groups", "frames" or "lanes":
  std::uint64_t step_needs = 0;         ///< what a full step takes of them,
  std::uint64_t step_has = 0;           ///< and what is complete for the next one.
  std::uint64_t wanted_slot_bytes = 0;  ///< For a step that waits for larger slots; 0: none does.
  std::uint64_t unrecorded_bytes = 0;   ///< That steps wait for to be recorded; 0: none does.
  bool ended = false;                   ///< No more is accepted.

  // The pool, in sequences and bytes.
  std::uint64_t claimed = 0;  ///< To come: claimed, or missing from groups that have begun.
  std::uint64_t waiting = 0;  ///< Never delivered.
  std::uint64_t waiting_bytes = 0;
  std::uint64_t kept = 0;  ///< Delivered, and to be delivered again.
  std::uint64_t kept_bytes = 0;
  std::uint64_t in_steps = 0;  ///< Out of the pool, and in steps that are kept.
  std::uint64_t in_steps_bytes = 0;
  std::uint64_t pool_sequences = 0;  ///< Most of the first three.
  std::uint64_t pool_bytes = 0;

  std::uint64_t groups = 0;          ///< Incomplete ones.
  std::uint64_t groups_missing = 0;  ///< Members that they lack.
  std::optional<Seconds> oldest_group;

  std::uint64_t claims_waiting = 0;
  std::string_view claims_wait_for;  ///< trainer, pool or staleness; empty: none waits.
  std::optional<Seconds> longest_claim;
  std::uint64_t pushes_waiting = 0;  ///< For room.
  std::optional<Seconds> longest_push;

  std::uint64_t producers_connected = 0;
  std::uint64_t producers_known = 0;  ///< By name; those that are gone included.
  std::optional<Seconds> pushed_ago;  ///< Since a sequence was accepted; empty: none was.
  /// Those that are connected, the one that has pushed nothing for longest first; then the latest
  /// of the others.
  std::vector<ProducerStatus> producers;
};

// Parts of the sentences of verdicts, without a capital and a full stop. Those that may be empty
// begin with "; ".

/// What the next step has, and what producers do about it.
std::string supply_text(const LiveStatus& live);
/// How full the pool is.
std::string pool_text(const LiveStatus& live);
/// Which version there is, and since when.
std::string version_text(const LiveStatus& live);
/// Groups that are incomplete; may be empty.
std::string groups_text(const LiveStatus& live);
/// What producers wait for now; may be empty.
std::string waits_text(const LiveStatus& live);

}  // namespace batchwright
