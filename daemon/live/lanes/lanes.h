#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/settings.h"

namespace batchwright {

/// What a lane is at.
struct Lane {
  SequenceId sequence = kNoId;  ///< kNoId: it is free.
  std::uint32_t length = 0;     ///< Frames of the sequence.
  std::uint32_t next = 0;       ///< The first frame of its next row.

  bool is_free() const { return sequence == kNoId; }
};

/// The lanes of truncated unrolling: each goes through a sequence, `unroll` frames a step, and then
/// takes another. Those of rank 0 come first, then those of rank 1, and so on, so that a lane stays
/// with its rank.
class Lanes {
 public:
  /// There are none where a step's budget is another.
  explicit Lanes(const LiveSettings& settings);

  bool exist() const { return !lanes_.empty(); }
  const std::vector<Lane>& all() const { return lanes_; }
  std::uint64_t free() const { return free_.size(); }
  std::uint64_t busy() const { return lanes_.size() - free_.size(); }
  /// Ranks of which no lane is busy.
  std::uint64_t idle_ranks() const { return idle_ranks_; }
  /// Frames of the lane's next row.
  std::uint32_t frames(const Lane& lane) const;

  /// A free lane takes the sequence: the first of the rank that has the fewest rows, of several
  /// such ranks the first. Costs O(log lanes).
  void take(SequenceId sequence, std::uint32_t length);
  /// A free lane is at this from now on.
  void put(std::uint32_t lane, const Lane& at);
  /// Each has given its row of a step. The sequences that are through, by lane: their lanes are
  /// free. Costs O(lanes).
  std::vector<SequenceId> move_on();
  /// All lanes become free. The sequences that they had.
  std::vector<SequenceId> clear();

  /// No sequence is longer from now on.
  void set_max_length(std::uint64_t frames);

  // How many sequences lanes take for sure. Those to come are as long as max_length, which is set.
  // Each costs O(max_length / unroll).

  /// In the next so many steps.
  std::int64_t room_in(std::int64_t steps) const;
  /// In so many steps after the next one, if `takes` free lanes take a sequence in that.
  std::int64_t room_after(std::uint64_t takes, std::int64_t steps) const;
  /// In so many steps those of one rank, all of them free now.
  std::int64_t room_of_rank(std::int64_t steps) const;

 private:
  std::int64_t takes_of(std::uint64_t lanes, std::int64_t steps) const;
  std::uint64_t parts(std::uint64_t frames) const { return (frames + unroll_ - 1) / unroll_; }
  void count(std::uint32_t lane, bool busy);

  const std::uint64_t unroll_;
  std::uint64_t longest_ = 1;    ///< Most steps of a sequence.
  const std::uint64_t of_rank_;  ///< Lanes.
  std::vector<Lane> lanes_;
  std::set<std::uint32_t> free_;
  std::vector<std::uint32_t> rows_;                          ///< Busy lanes, by rank.
  std::set<std::pair<std::uint32_t, std::uint32_t>> ranks_;  ///< Those with rank, the fewest first.
  std::uint64_t idle_ranks_ = 0;
  std::uint64_t moves_ = 0;
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< Busy lanes, by the move that frees them.
};

}  // namespace batchwright
