#include "daemon/assembly/batch_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/assembly/copying/run_copy.h"
#include "daemon/assembly/row_parts.h"
#include "daemon/assembly/tensor_copy.h"

namespace batchwright {
namespace {

/// Where a record has its header, the table of a few fields, and most keys.
constexpr std::size_t kHeaderBytes = 2 * kCacheLine;

Error faulted() {
  return {ErrorCode::store_unavailable,
          "the dataset's map cannot be read: its file was truncated, or the disk failed"};
}

/// The plan and the slot's size come from the length index; a record that differs from it would
/// be copied to where it does not belong. `values` are the record's fields.
Result<void> check_against_index(const Snapshot& snapshot, std::span<const FieldValue> values,
                                 const Row& row) {
  const std::vector<FieldSpec>& fields = snapshot.schema().fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].kind == FieldKind::scalar) continue;
    const std::uint32_t indexed = per_frame(fields[f]) ? snapshot.lengths()[row.ordinal]
                                                       : snapshot.field_lengths(f)[row.ordinal];
    if (values[f].length == indexed) continue;
    return Error{ErrorCode::corrupt_record,
                 fmt::format("sequence {}: field \"{}\" has length {}, the length index says {}",
                             row.ordinal, fields[f].name, values[f].length, indexed)};
  }
  return {};
}

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

/// Frames of a planned batch whose targets are not ignored.
std::uint64_t real_frames(const EpochPlan& plan, BatchIndex index, const Recipe& recipe) {
  std::vector<Row> rows;
  plan.rows(index, rows);
  std::uint64_t frames = 0;
  for (const Row& row : rows) frames += recipe.real_frames(row.start, row.length);
  return frames;
}

/// Sums over the `world` batches of the step: this one as it is, the others as planned. What they
/// will have to leave out is not known here.
void add_step_figures(const EpochPlan& plan, const Recipe* recipe, BatchSpec& spec) {
  spec.step_sequences = static_cast<std::uint32_t>(spec.lengths.size());
  spec.step_frames = spec.batch_frames;
  for (std::uint64_t rank = 0; rank < plan.world(); ++rank) {
    const BatchIndex index{spec.step.value * plan.world() + rank};
    if (index == spec.index) continue;
    const BatchFigures figures = plan.figures(index);
    spec.step_sequences += figures.rows;
    spec.step_frames += recipe == nullptr ? figures.frames : real_frames(plan, index, *recipe);
  }
}

}  // namespace

Result<AssembledBatch> BatchBuilder::build(const BatchJob& job) {
  const EpochPlan& plan = job.source.plan;
  if (job.index.value >= plan.batches()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the epoch has {} batches", plan.batches())};
  }
  AssembledBatch batch;
  // Records are read before there is a shape: a row that is left out changes it.
  plan.rows(job.index, planned_);
  if (auto read = read_rows(job, batch.skipped); !read) return read.error();
  if (auto checked = check_not_empty(batch.skipped); !checked) return checked.error();
  BatchSpec spec;
  spec.rows_lost = static_cast<std::uint32_t>(batch.skipped.size());
  const auto laid_out = lay_out(job, spec);
  if (!laid_out) return laid_out.error();
  if (auto copied = copy_payload(job, spec, *laid_out, batch.lost); !copied) return copied.error();
  // Without a lock on the dataset a writer may have written to what was just copied.
  if (auto whole = job.source.snapshot->check_unchanged(); !whole) return whole.error();
  batch.offset = laid_out->offset;
  batch.size = laid_out->size;
  batch.rows = static_cast<std::uint32_t>(lengths_.size());
  batch.frames = spec.batch_frames;
  batch.padded_frames = std::uint64_t{batch.rows} * spec.batch_length;
  making_.figures.step_seconds = making_.maker.take_seconds();
  batch.made = std::exchange(making_.figures, {});
  making_.kept.clear();
  return batch;
}

/// All of them before the first is read: no cache has the lines that a record begins with, and so
/// the processor waits for those of all rows at once.
void BatchBuilder::look_up_rows(const BatchJob& job) {
  places_ = job.source.found->take(*job.source.snapshot, job.index, planned_);
  for (const auto& place : places_) {
    if (place) prefetch_lines(place->bytes, kHeaderBytes);
  }
}

Result<void> BatchBuilder::read_rows(const BatchJob& job, std::vector<SkippedSequence>& skipped) {
  ordinals_.clear();
  lengths_.clear();
  starts_.clear();
  flags_.clear();
  key_ends_.clear();
  key_text_.clear();
  making_.kept.clear();  // a batch that failed may have left some
  const Snapshot& snapshot = *job.source.snapshot;
  columns_.resize(row_schema(snapshot, job.style.recipe.get()).fields.size());
  values_.resize(snapshot.schema().fields.size());
  for (Column& column : columns_) {
    column.sources.clear();
    column.lengths.clear();
  }
  // Lanes and chunks go on in the next batch at the same place, so a row must not vanish.
  const bool keeps_rows =
      job.source.has_parts || !std::all_of(planned_.begin(), planned_.end(), is_whole);
  look_up_rows(job);
  for (std::size_t r = 0; r < planned_.size(); ++r) {
    Row row = planned_[r];
    const auto read = read_row(job, row, places_[r]);
    if (read) continue;
    const Error& error = read.error();
    // Errors of this record alone: a disk that fails is no reason to skip a row.
    const bool this_record = error.code == ErrorCode::corrupt_record ||
                             error.code == ErrorCode::not_found ||
                             error.code == ErrorCode::unsupported_version;
    if (!this_record || job.style.on_corrupt == OnCorrupt::stop) return error;
    skipped.push_back({Ordinal{row.ordinal}, error.message});
    // A lane keeps its place, for the rows of the next batch go on from the rows of this one.
    row.length = 0;
    if (keeps_rows) add_row(row);
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
      fmt::format(
          "all {} rows are corrupt, and a batch without any cannot be delivered; the first: {}",
          skipped.size(), skipped.front().reason)};
}

Result<void> BatchBuilder::read_row(const BatchJob& job, const Row& row,
                                    const std::optional<RecordPlace>& place) {
  if (row.length == 0) {
    add_row(row);
    return {};
  }
  const Snapshot& snapshot = *job.source.snapshot;
  const Ordinal ordinal{row.ordinal};
  // What has no place is looked up once more, for the reason.
  const auto record = place ? snapshot.record(ordinal, *place) : snapshot.record(ordinal);
  if (!record) return record.error();
  const std::size_t key_start = key_text_.size();
  key_text_.resize(key_start + record->key().size());
  // The key is copied: it is read again while the batch is laid out, outside of a guard.
  const bool read = guarded([&] {
    for (std::size_t f = 0; f < values_.size(); ++f) values_[f] = record->field(f);
    std::memcpy(key_text_.data() + key_start, record->key().data(), record->key().size());
  });
  if (!read) return faulted();
  auto usable = check_against_index(snapshot, values_, row);
  if (usable) usable = make_row(job, row);
  if (!usable) {
    // A row that is skipped has no key.
    key_text_.resize(key_start);
    return usable;
  }
  add_row(row);
  set_sources(job, row);
  return {};
}

/// What a recipe makes of the current record's values: into memory of the builder's own.
Result<void> BatchBuilder::make_row(const BatchJob& job, const Row& row) {
  if (std::uint64_t{row.start} + row.length > job.source.row_lengths()[row.ordinal]) {
    return Error{ErrorCode::internal, "the plan's row passes the end of its sequence"};
  }
  if (job.style.recipe == nullptr) return {};
  const std::size_t place = lengths_.size();
  if (is_whole(row)) {
    if (making_.own.size() <= place) making_.own.resize(place + 1);
    return make_by_recipe(job, row, making_.own[place]);
  }
  const KeptRows::Part part{(row.flags & kRowLast) != 0,
                            job.source.plan.chunks_of(Ordinal{row.ordinal})};
  const std::uint32_t use = job.source.draws.count_uses() ? row.use : 0;
  auto kept = job.source.kept->get({row.ordinal, use}, part, [&]() -> Result<KeptRow> {
    const auto made = std::make_shared<std::vector<MadeField>>();
    if (auto done = make_by_recipe(job, row, *made); !done) return done.error();
    return KeptRow(made);
  });
  if (!kept) return kept.error();
  making_.kept.resize(place + 1);
  making_.kept[place] = *std::move(kept);
  return {};
}

Result<void> BatchBuilder::make_by_recipe(const BatchJob& job, const Row& row,
                                          std::vector<MadeField>& made) {
  const Recipe& recipe = *job.style.recipe;
  const auto draws_of_row = job.source.draws.of(Ordinal{row.ordinal}, row.use);
  if (auto done = making_.maker.make(recipe, draws_of_row, values_, made); !done) {
    return Error{done.error().code,
                 fmt::format("sequence {}: {}", row.ordinal, done.error().message)};
  }
  const RowDraws& draws = making_.maker.draws();
  making_.figures.sound_seconds += draws.stored_seconds;
  making_.figures.samples_saturated += draws.saturated;
  making_.figures.noise_left_out += draws.noise.applies && !draws.mix.added ? 1 : 0;
  const std::uint32_t length = job.source.row_lengths()[row.ordinal];
  for (std::size_t f = 0; f < made.size(); ++f) {
    if (!recipe.makes_frames(f) || made[f].length == length) continue;
    return Error{ErrorCode::internal,
                 fmt::format("sequence {}: a row of {} frames was made, {} were planned",
                             row.ordinal, made[f].length, length)};
  }
  return {};
}

/// Of the row that was made for this place in the batch.
std::span<const std::byte> BatchBuilder::made_bytes(std::size_t row, std::size_t field) const {
  const bool kept = row < making_.kept.size() && making_.kept[row];
  return kept ? (*making_.kept[row])[field].bytes : making_.own[row][field].bytes;
}

/// A row that is all padding, until set_sources() gives it content.
void BatchBuilder::add_row(const Row& row) {
  ordinals_.push_back(row.ordinal);
  lengths_.push_back(row.length);
  starts_.push_back(row.start);
  flags_.push_back(row.flags);
  key_ends_.push_back(key_text_.size());
  for (Column& column : columns_) {
    column.sources.emplace_back();
    column.lengths.push_back(0);
  }
}

void BatchBuilder::set_sources(const BatchJob& job, const Row& row) {
  const Recipe* const recipe = job.style.recipe.get();
  const std::vector<FieldSpec>& fields = row_schema(*job.source.snapshot, recipe).fields;
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    const std::size_t frame = frame_bytes(fields[f]);
    const FieldValue& stored = values_[recipe == nullptr ? f : recipe->stored_field(f)];
    const bool made = recipe != nullptr && recipe->makes(f);
    const std::span<const std::byte> bytes =
        made ? made_bytes(lengths_.size() - 1, f) : stored.bytes;
    columns_[f].lengths.back() = stored.length;
    columns_[f].sources.back() =
        per_frame(fields[f]) ? bytes.subspan(row.start * frame, row.length * frame) : bytes;
  }
}

/// The fields as the batch has them. What makes up no tensor is left out: names of categories may
/// be many.
void BatchBuilder::cast_fields(const BatchJob& job) {
  const std::vector<FieldSpec>& stored =
      row_schema(*job.source.snapshot, job.style.recipe.get()).fields;
  fields_.resize(stored.size());
  for (std::size_t f = 0; f < stored.size(); ++f) {
    fields_[f].name = stored[f].name;
    fields_[f].kind = stored[f].kind;
    fields_[f].dtype = cast_dtype(job.style.casts, stored[f]);
    fields_[f].shape = stored[f].shape;
  }
}

Result<LaidOutBatch> BatchBuilder::lay_out(const BatchJob& job, BatchSpec& spec) {
  const EpochPlan& plan = job.source.plan;
  keys_.clear();
  for (std::size_t r = 0, start = 0; r < key_ends_.size(); start = key_ends_[r++]) {
    keys_.emplace_back(key_text_.data() + start, key_ends_[r] - start);
  }
  spec.feed = job.style.feed;
  spec.epoch = job.source.epoch;
  spec.step = Step{job.index.value / plan.world()};
  spec.index = job.index;
  spec.world = plan.world();
  spec.fingerprint = job.source.fingerprint;
  spec.layout = job.style.layout;
  // The plan's, whatever was skipped: a batch has the shape that was foreseen, except for its rows.
  spec.batch_length = plan.figures(job.index).batch_length;
  spec.ordinals = ordinals_;
  spec.keys = keys_;
  spec.lengths = lengths_;
  // Absent lists say that all rows are whole sequences (batch.fbs).
  if (!std::all_of(planned_.begin(), planned_.end(), is_whole)) {
    spec.starts = starts_;
    spec.flags = flags_;
  }
  const Recipe* const recipe = job.style.recipe.get();
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    spec.batch_frames +=
        recipe == nullptr ? lengths_[r] : recipe->real_frames(starts_[r], lengths_[r]);
  }
  add_step_figures(plan, recipe, spec);
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
  const std::vector<FieldSpec>& stored =
      row_schema(*job.source.snapshot, job.style.recipe.get()).fields;
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
    if (!read) return faulted();
    if (overflows.values == 0) continue;
    lost = {lost.values + overflows.values, field.name, Ordinal{ordinals_[overflows.row]}};
  }
  return {};
}

}  // namespace batchwright
