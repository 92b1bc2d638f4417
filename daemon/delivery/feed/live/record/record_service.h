#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/delivery/feed/live/record/recorded_step.h"
#include "formats/formats.h"

namespace batchwright {

/// What a live feed notes of the steps that it delivers: each once, in the order in which the first
/// batch of each was handed out. StepRecord writes them. Threads: one at a time.
class RecordService {
 public:
  using Sequences = std::vector<std::shared_ptr<const PushedSequence>>;
  using Batches = std::vector<std::shared_ptr<const LiveBatch>>;

  /// The record has so many sequences.
  RecordService(std::uint64_t sequences, std::uint64_t incarnation)
      : next_(sequences), incarnation_(incarnation) {}

  bool has(Step step) const { return noted_.contains(step.value); }
  /// Notes a step. The sequences that the record gets by it, which have to stay until written().
  const Sequences& add(Step step, const Batches& batches);
  /// What is to be written, and was not taken before: numbered from 1 in that order.
  std::vector<RecordedStep> take() { return std::exchange(steps_, {}); }
  /// The steps up to this number are written. The sequences that they gave the record.
  Sequences written(std::uint64_t upto);
  /// Bytes of the sequences that are not written.
  std::uint64_t unwritten_bytes() const { return unwritten_bytes_; }

  /// No step before this one is delivered any more.
  void keep_from(Step step) { noted_.erase(noted_.begin(), noted_.lower_bound(step.value)); }
  /// No step that follows has this sequence.
  void forget(std::uint64_t arrival) { ordinals_.erase(arrival); }

 private:
  std::uint64_t ordinal_of(const std::shared_ptr<const PushedSequence>& sequence,
                           RecordedStep& step);

  std::uint64_t next_;  ///< Ordinal of the next sequence.
  const std::uint64_t incarnation_;
  std::set<std::uint64_t> noted_;                    ///< Steps.
  std::map<std::uint64_t, std::uint64_t> ordinals_;  ///< By arrival.
  std::vector<RecordedStep> steps_;
  std::deque<Sequences> unwritten_;  ///< Of each step that is not written.
  std::uint64_t unwritten_bytes_ = 0;
  std::uint64_t written_ = 0;  ///< Steps.
};

}  // namespace batchwright
