#include "daemon/delivery/feed/live/step_gate.h"

#include <algorithm>
#include <cstdint>

namespace batchwright {

void StepGate::add(std::vector<LiveBatch> batches) {
  Held step;
  for (const LiveBatch& batch : batches) {
    step.slot_bytes = std::max(step.slot_bytes, bytes_of(batch));
  }
  step.batches = std::move(batches);
  held_.push_back(std::move(step));
  let_through();
}

void StepGate::end() {
  ended_ = true;
  let_through();
}

void StepGate::set_slot_bytes(std::size_t bytes) {
  slot_bytes_ = bytes;
  let_through();
}

void StepGate::wait_for_record(bool waits) {
  if (waits == std::exchange(waits_for_record_, waits)) return;
  let_through();
}

void StepGate::let_through() {
  while (!held_.empty() && fits(held_.front()) && !waits_for_record_) {
    source_->add(std::move(held_.front().batches));
    held_.pop_front();
    news_ = true;
  }
  if (!ended_ || !held_.empty()) return;
  source_->end();
  news_ = true;
}

std::size_t StepGate::bytes_of(const LiveBatch& batch) const {
  const std::vector<FieldSpec>& fields = batch_schema_.fields;
  BatchBound bound{batch.rows.size(), 0, 0, fields.size(), name_bytes_};
  bound.live = true;
  for (const auto& sequence : batch.sequences) {
    if (sequence) bound.key_bytes += sequence->key.size();
  }
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::uint64_t longest = per_frame(fields[f]) ? batch.figures.batch_length : 0;
    for (const auto& sequence : batch.sequences) {
      if (!sequence || per_frame(fields[f])) continue;
      longest = std::max<std::uint64_t>(longest, sequence->fields[f].length);
    }
    bound.payload_bytes += batch.rows.size() * longest * frame_bytes(fields[f]);
    bound.name_bytes += fields[f].name.size();
  }
  return static_cast<std::size_t>(batch_bytes_bound(bound));
}

}  // namespace batchwright
