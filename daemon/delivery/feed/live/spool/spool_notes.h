#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/live/producer.h"
#include "daemon/delivery/feed/live/spool_turn.h"
#include "daemon/live/live.h"

namespace batchwright {

/// What a live feed has to note for its spool, as it happens. Spool writes it.
/// Threads: one at a time.
class SpoolNotes {
 public:
  /// Of the steps of before the spool has those from `first` on. They stay for those that come back
  /// until `kept_until_ms`; empty: there are none.
  SpoolNotes(std::uint64_t first, std::optional<std::uint64_t> kept_until_ms)
      : kept_from_(first), released_(first), kept_until_ms_(kept_until_ms) {}

  std::optional<std::uint64_t> kept_until_ms() const { return kept_until_ms_; }
  /// Whether steps of before are kept, even if all have released them.
  bool keeps_all(std::uint64_t now_ms) {
    if (kept_until_ms_ && now_ms >= *kept_until_ms_) kept_until_ms_.reset();
    return kept_until_ms_.has_value();
  }
  /// No step before this one is kept. The next of them that is released by that; empty: none.
  std::optional<std::uint64_t> release_before(std::uint64_t step) {
    return released_ < step ? std::optional(released_++) : std::nullopt;
  }

  void accepted(std::shared_ptr<const PushedSequence> sequence, const LiveChange& change);
  /// `changes`: those that came with the steps.
  void cut(const std::vector<LiveStep>& steps, const std::vector<LiveChange>& changes);
  /// Another state than `waiting`. To be called after cut().
  void changed(const LiveChange& change);
  /// The sequence is in no step, and out of the pool, and is kept all the same.
  void left(std::uint64_t arrival) { turn_.marks.push_back({arrival, 0, 0, true}); }
  void freed(std::uint64_t arrival) {
    turn_.freed.push_back(arrival);
    settled_.erase(arrival);
  }
  /// What became of it was told before the daemon started; it is kept for its steps.
  void note_settled(std::uint64_t arrival) { settled_.insert(arrival); }
  bool is_settled(std::uint64_t arrival) const { return settled_.contains(arrival); }
  void groups(const std::vector<LiveGroupChange>& changes);
  /// Something of the producer is another. `number`: of the outcome that is, if that is what it is.
  void touched(ProducerId producer, std::optional<std::uint64_t> number = {});
  /// Something of SpoolCounts is another.
  void counted() { counted_ = true; }

  /// Empty: nothing has changed since it was taken last.
  std::optional<SpoolTurn> take(SpoolCounts counts, const ProducerTable& producers);

 private:
  bool is_empty() const {
    return !counted_ && turn_.accepted.empty() && turn_.steps.empty() && turn_.marks.empty() &&
           turn_.groups.empty() && turn_.freed.empty() && touched_.empty();
  }

  SpoolTurn turn_;
  std::unordered_set<std::uint64_t> left_with_step_;  ///< Of whose leaving changed() is to hear.
  std::unordered_set<std::uint64_t> settled_;         ///< Arrivals.
  bool counted_ = false;
  std::uint64_t kept_from_;  ///< As the spool has it.
  std::uint64_t released_;   ///< Steps before it are released by those of before.
  std::optional<std::uint64_t> kept_until_ms_;
  /// First and last number whose outcomes changed, by producer; empty: none did.
  std::map<ProducerId, std::optional<std::pair<std::uint64_t, std::uint64_t>>> touched_;
};

}  // namespace batchwright
