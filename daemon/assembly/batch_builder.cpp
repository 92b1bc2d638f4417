#include "daemon/assembly/batch_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "daemon/assembly/copying/run_copy.h"
#include "daemon/assembly/row_parts.h"
#include "daemon/assembly/tensor_copy.h"

namespace batchwright {
namespace {

/// Frames of a row of `field` as laid out, padding included.
std::uint64_t laid_out_frames(const FieldSpec& field, std::uint32_t batch_length,
                              std::span<const std::uint32_t> lengths) {
  if (per_frame(field)) return batch_length;
  if (field.kind == FieldKind::scalar) return 1;
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

/// A scalar has no frames, and so no axis of them.
std::vector<std::uint64_t> shape_of(const FieldSpec& field, Layout layout, std::uint64_t rows,
                                    std::uint64_t frames) {
  std::vector<std::uint64_t> shape{rows};
  if (field.kind != FieldKind::scalar) {
    shape.insert(layout == Layout::time_major ? shape.begin() : shape.end(), frames);
  }
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return shape;
}

/// Sums over the `world` batches of the step: this one, which counts `rows`, as it is, the others
/// as planned. What they will have to leave out is not known here.
void add_step_figures(const BatchSource& source, std::uint32_t rows, BatchSpec& spec) {
  spec.step_sequences = rows;
  spec.step_frames = spec.batch_frames;
  for (std::uint64_t rank = 0; rank < spec.world; ++rank) {
    const BatchIndex index{spec.step.value * spec.world + rank};
    if (index == spec.index) continue;
    const BatchCounts planned = source.counts(index);
    spec.step_sequences += planned.rows;
    spec.step_frames += planned.frames;
  }
}

}  // namespace

Result<AssembledBatch> BatchBuilder::build(const BatchJob& job) {
  const EpochOutline outline = job.source.outline();
  if (job.index.value >= outline.batches) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the epoch has {} batches", outline.batches)};
  }
  AssembledBatch batch;
  // Rows are read before there is a shape: one that is left out changes it.
  job.source.rows(job.index, planned_);
  const auto reader = job.source.read(job.index, planned_);
  if (auto read = read_rows(job, outline, *reader, batch.skipped); !read) return read.error();
  if (auto checked = check_not_empty(batch.skipped); !checked) return checked.error();
  BatchSpec spec;
  const std::shared_ptr<const LiveRows> live = job.source.live_rows(job.index);
  spec.live = live.get();
  spec.rows_lost = static_cast<std::uint32_t>(batch.skipped.size());
  const auto laid_out = lay_out(job, outline, spec);
  if (!laid_out) return laid_out.error();
  if (auto copied = copy_payload(job, spec, *laid_out, batch.lost); !copied) return copied.error();
  if (auto whole = reader->check_unchanged(); !whole) return whole.error();
  batch.offset = laid_out->offset;
  batch.size = laid_out->size;
  batch.rows = static_cast<std::uint32_t>(lengths_.size());
  batch.frames = spec.batch_frames;
  batch.padded_frames = std::uint64_t{batch.rows} * spec.batch_length;
  batch.made = reader->made();
  return batch;
}

Result<void> BatchBuilder::read_rows(const BatchJob& job, const EpochOutline& outline,
                                     BatchReader& reader, std::vector<SkippedSequence>& skipped) {
  ordinals_.clear();
  lengths_.clear();
  starts_.clear();
  flags_.clear();
  weights_.clear();
  uses_.clear();
  key_ends_.clear();
  key_text_.clear();
  columns_.resize(job.source.schema().fields.size());
  for (Column& column : columns_) {
    column.sources.clear();
    column.lengths.clear();
  }
  // Lanes and chunks go on in the next batch at the same place, so a row must not vanish.
  const bool keeps_rows =
      outline.has_parts || !std::all_of(planned_.begin(), planned_.end(), is_whole);
  for (std::size_t r = 0; r < planned_.size(); ++r) {
    Row row = planned_[r];
    const auto read = row.length == 0 ? Result<void>() : read_row(job, r, reader);
    if (!read) {
      const Error& error = read.error();
      // Errors of this record alone: a disk that fails is no reason to skip a row.
      const bool this_record = error.code == ErrorCode::corrupt_record ||
                               error.code == ErrorCode::not_found ||
                               error.code == ErrorCode::unsupported_version;
      if (!this_record || job.style.on_corrupt == OnCorrupt::stop) return error;
      skipped.push_back({Ordinal{row.ordinal}, error.message});
      if (!keeps_rows) continue;
      row.length = 0;
    }
    add_row(row);
    if (row.length != 0) set_sources(job, row);
  }
  return {};
}

/// The mean over no frame is NaN, and one such loss ends a training. To leave the batch out is no
/// way out either: every rank takes the same number of steps.
Result<void> BatchBuilder::check_not_empty(std::span<const SkippedSequence> skipped) const {
  const auto has_frames = [](std::uint32_t length) { return length != 0; };
  if (skipped.empty() || std::any_of(lengths_.begin(), lengths_.end(), has_frames)) return {};
  return Error{
      ErrorCode::corrupt_record,
      fmt::format("all {} rows are corrupt; an empty batch cannot be delivered; the first: {}",
                  skipped.size(), skipped.front().reason)};
}

/// What the plan says of a row is held against the bytes that the source has of it.
Result<void> BatchBuilder::read_row(const BatchJob& job, std::size_t r, BatchReader& reader) {
  if (auto read = reader.read(r, row_); !read) return read;
  const Row& row = planned_[r];
  const std::vector<FieldSpec>& fields = job.source.schema().fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::uint64_t end = std::uint64_t{row.start} + row.length;
    if (!per_frame(fields[f]) || end * frame_bytes(fields[f]) <= row_.fields[f].bytes.size()) {
      continue;
    }
    return Error{ErrorCode::internal, "the plan's row passes the end of its sequence"};
  }
  return {};
}

/// A row that is all padding, until set_sources() gives it content.
void BatchBuilder::add_row(const Row& row) {
  if (row.length != 0) key_text_.insert(key_text_.end(), row_.key.begin(), row_.key.end());
  ordinals_.push_back(row.ordinal);
  lengths_.push_back(row.length);
  starts_.push_back(row.start);
  flags_.push_back(row.flags);
  weights_.push_back(row.weight);
  uses_.push_back(row.use);
  key_ends_.push_back(key_text_.size());
  for (Column& column : columns_) {
    column.sources.emplace_back();
    column.lengths.push_back(0);
  }
}

void BatchBuilder::set_sources(const BatchJob& job, const Row& row) {
  const std::vector<FieldSpec>& fields = job.source.schema().fields;
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    const std::size_t frame = frame_bytes(fields[f]);
    const FieldValue& value = row_.fields[f];
    columns_[f].lengths.back() = value.length;
    columns_[f].sources.back() = per_frame(fields[f])
                                     ? value.bytes.subspan(row.start * frame, row.length * frame)
                                     : value.bytes;
  }
}

/// The fields as the batch has them. What makes up no tensor is left out: names of categories may
/// be many.
void BatchBuilder::cast_fields(const BatchJob& job) {
  const std::vector<FieldSpec>& stored = job.source.schema().fields;
  fields_.resize(stored.size());
  for (std::size_t f = 0; f < stored.size(); ++f) {
    fields_[f].name = stored[f].name;
    fields_[f].kind = stored[f].kind;
    fields_[f].dtype = cast_dtype(job.style.casts, stored[f]);
    fields_[f].shape = stored[f].shape;
  }
}

Result<LaidOutBatch> BatchBuilder::lay_out(const BatchJob& job, const EpochOutline& outline,
                                           BatchSpec& spec) {
  keys_.clear();
  for (std::size_t r = 0, start = 0; r < key_ends_.size(); start = key_ends_[r++]) {
    keys_.emplace_back(key_text_.data() + start, key_ends_[r] - start);
  }
  spec.feed = job.style.feed;
  spec.epoch = outline.epoch;
  spec.step = Step{job.index.value / outline.world};
  spec.index = job.index;
  spec.world = outline.world;
  spec.fingerprint = outline.fingerprint;
  spec.layout = job.style.layout;
  // The plan's, whatever was skipped: a batch has the shape that was foreseen, except for its rows.
  spec.batch_length = job.source.figures(job.index).batch_length;
  spec.ordinals = ordinals_;
  spec.keys = keys_;
  spec.lengths = lengths_;
  // Absent lists say that all rows are whole sequences (batch.fbs).
  if (!std::all_of(planned_.begin(), planned_.end(), is_whole)) {
    spec.starts = starts_;
    spec.flags = flags_;
  }
  const bool weighted =
      std::any_of(weights_.begin(), weights_.end(), [](float weight) { return weight != 1.0F; });
  if (weighted || spec.live != nullptr) spec.weights = weights_;
  const auto came_before = [](std::uint32_t use) { return use != 0; };
  if (std::any_of(uses_.begin(), uses_.end(), came_before)) spec.uses = uses_;
  std::uint32_t counted = 0;
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    if (weights_[r] == 0) continue;
    ++counted;
    spec.batch_frames += job.source.real_frames({ordinals_[r], starts_[r], lengths_[r]});
  }
  add_step_figures(job.source, counted, spec);
  cast_fields(job);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const auto frames = laid_out_frames(fields_[f], spec.batch_length, columns_[f].lengths);
    TensorSpec tensor{&fields_[f], shape_of(fields_[f], spec.layout, lengths_.size(), frames), {}};
    if (fields_[f].kind == FieldKind::independent) tensor.row_lengths = columns_[f].lengths;
    spec.tensors.push_back(std::move(tensor));
  }
  return lay_out_batch(spec, job.slot);
}

Result<void> BatchBuilder::copy_payload(const BatchJob& job, const BatchSpec& spec,
                                        const LaidOutBatch& laid_out, CastLoss& lost) const {
  const std::vector<FieldSpec>& stored = job.source.schema().fields;
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    const FieldSpec& field = *spec.tensors[f].field;
    // A scalar has no axis of frames, and lies alike in both layouts.
    const bool scalar = field.kind == FieldKind::scalar;
    const TensorGrid grid{
        laid_out.payloads[f],
        lengths_.size(),
        static_cast<std::size_t>(laid_out_frames(field, spec.batch_length, columns_[f].lengths)),
        frame_bytes(field),
        scalar ? Layout::batch_major : spec.layout,
        number_bytes(field.dtype, padding_value(job.style.padding, field)),
        field.dtype == stored[f].dtype ? DType::none : field.dtype};
    CastOverflows overflows;
    const bool read =
        guarded([&] { overflows = fill_tensor(grid, columns_[f].sources, job.copies); });
    if (!read) return map_faulted();
    if (overflows.values == 0) continue;
    lost = {lost.values + overflows.values, field.name, Ordinal{ordinals_[overflows.row]}};
  }
  return {};
}

}  // namespace batchwright
