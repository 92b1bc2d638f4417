#include "daemon/delivery/feed/live/live_source.h"

#include <fmt/core.h>

#include <utility>

namespace batchwright {
namespace {

/// Empty where no row is joined.
std::vector<JoinedPart> joined_parts(const LiveBatch& batch, std::span<const Row> rows) {
  std::vector<JoinedPart> parts;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const PushedSequence* const sequence = batch.sequences.at(r).get();
    if (rows[r].length == 0 || sequence == nullptr || !sequence->of) continue;
    parts.resize(rows.size());
    const std::uint32_t frames = sequence->fields.front().length;
    parts[r] = {&*sequence->of, frames, rows[r].start, rows[r].length};
  }
  return parts;
}

/// Keeps the batch, and so the bytes of its rows.
class LiveReader final : public BatchReader {
 public:
  LiveReader(BatchIndex index, std::shared_ptr<const LiveBatch> batch, std::span<const Row> rows)
      : index_(index),
        batch_(std::move(batch)),
        joined_(batch_ ? joined_parts(*batch_, rows) : std::vector<JoinedPart>()) {}

  Result<void> read(std::size_t r, RowBytes& row) override {
    if (auto kept = check_kept(); !kept) return kept;
    const PushedSequence& sequence = *batch_->sequences.at(r);
    row.key = sequence.key;
    row.fields = sequence.fields;
    return joined_.read(r, row.fields);
  }
  Result<void> check_unchanged() const override {
    if (auto kept = check_kept(); !kept) return kept;
    return joined_.check_unchanged();
  }
  MadeRows made() override { return joined_.made(); }

 private:
  Result<void> check_kept() const {
    if (batch_) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("batch {} is of a step that is no longer kept", index_.value)};
  }

  BatchIndex index_;
  std::shared_ptr<const LiveBatch> batch_;
  JoinedRows joined_;
};

}  // namespace

void LiveSource::add(std::vector<LiveBatch> batches) {
  must(batches.size() == world_, "a step has a batch for each rank");
  const MutexLock lock(mutex_);
  for (LiveBatch& batch : batches) {
    batches_.push_back(std::make_shared<const LiveBatch>(std::move(batch)));
  }
}

void LiveSource::begin_at(std::uint64_t step) {
  const MutexLock lock(mutex_);
  first_ = step * world_;
}

void LiveSource::keep_from(std::uint64_t step) {
  const MutexLock lock(mutex_);
  while (!batches_.empty() && first_ < step * world_) {
    batches_.pop_front();
    ++first_;
  }
}

void LiveSource::end() {
  const MutexLock lock(mutex_);
  ended_ = true;
}

std::uint64_t LiveSource::first_kept() const {
  const MutexLock lock(mutex_);
  return first_ / world_;
}

EpochOutline LiveSource::outline() const {
  const MutexLock lock(mutex_);
  return {Epoch{0}, fingerprint_, world_, first_ + batches_.size(), has_parts_, !ended_};
}

std::shared_ptr<const LiveBatch> LiveSource::find(BatchIndex index) const {
  const MutexLock lock(mutex_);
  if (index.value < first_ || index.value - first_ >= batches_.size()) return nullptr;
  return batches_[static_cast<std::size_t>(index.value - first_)];
}

BatchFigures LiveSource::figures(BatchIndex index) const {
  const auto batch = find(index);
  return batch ? batch->figures : BatchFigures{};
}

void LiveSource::rows(BatchIndex index, std::vector<Row>& rows) const {
  const auto batch = find(index);
  rows.clear();
  if (batch) rows = batch->rows;
}

std::shared_ptr<const LiveRows> LiveSource::live_rows(BatchIndex index) const {
  const auto batch = find(index);
  return batch ? std::shared_ptr<const LiveRows>(batch, &batch->says) : nullptr;
}

void LiveSource::prepare(BatchIndex index) const {
  const auto batch = find(index);
  if (batch) JoinedRows(joined_parts(*batch, batch->rows)).prepare();
}

std::unique_ptr<BatchReader> LiveSource::read(BatchIndex index, std::span<const Row> rows) const {
  return std::make_unique<LiveReader>(index, find(index), rows);
}

}  // namespace batchwright
