#include "daemon/delivery/feed/live/record/record_service.h"

#include <fmt/format.h>

#include <iterator>

namespace batchwright {

const RecordService::Sequences& RecordService::add(Step step, const Batches& batches) {
  RecordedStep recorded;
  recorded.first = next_;
  auto to = std::back_inserter(recorded.lines);
  // Each incarnation of the feed counts its steps from 0.
  if (unwritten_.empty() && written_ == 0) {
    fmt::format_to(to, "# incarnation {:016x}\n", incarnation_);
  }
  fmt::format_to(to, "# step {}, version {}\n", step.value, batches.front()->says.version);
  for (const auto& batch : batches) {
    for (std::size_t r = 0; r < batch->rows.size(); ++r) {
      if (r != 0) recorded.lines += '\t';
      const Row& row = batch->rows[r];
      if (row.length == 0) {  // a free lane
        recorded.lines += '-';
        continue;
      }
      fmt::format_to(to, "#{}", ordinal_of(batch->sequences[r], recorded));
      const bool is_whole = (row.flags & kRowReset) != 0 && (row.flags & kRowLast) != 0;
      if (!is_whole) fmt::format_to(to, " {} {}", row.start, row.length);
      // As a double, whose shortest form gives the same float again.
      const double weight = row.weight;
      if (weight != 1) fmt::format_to(to, " *{}", weight);
    }
    recorded.lines += '\n';
  }
  noted_.insert(step.value);
  unwritten_.push_back(recorded.sequences);
  steps_.push_back(std::move(recorded));
  return unwritten_.back();
}

std::uint64_t RecordService::ordinal_of(const std::shared_ptr<const PushedSequence>& sequence,
                                        RecordedStep& step) {
  const auto [found, is_new] = ordinals_.try_emplace(sequence->arrival, next_);
  if (!is_new) return found->second;
  step.sequences.push_back(sequence);
  unwritten_bytes_ += sequence->bytes();
  return next_++;
}

RecordService::Sequences RecordService::written(std::uint64_t upto) {
  Sequences all;
  for (; written_ < upto && !unwritten_.empty(); ++written_) {
    for (const auto& sequence : unwritten_.front()) {
      unwritten_bytes_ -= sequence->bytes();
      all.push_back(sequence);
    }
    unwritten_.pop_front();
  }
  return all;
}

}  // namespace batchwright
