#include "daemon/assembly/sources/epoch_source.h"

#include <fmt/core.h>

#include <cstring>

#include "daemon/assembly/copying/run_copy.h"
#include "daemon/assembly/row_parts.h"

namespace batchwright {
namespace {

/// Where a record has its header, the table of a few fields, and most keys.
constexpr std::size_t kHeaderBytes = 2 * kCacheLine;

/// The parts of the record's values that the row needs. Reads the map.
void needed_of(const Schema& schema, const RecordView& record, const Row& row, bool in_parts,
               std::vector<MapBytes>& needed) {
  for (std::size_t f = 0; f < schema.fields.size(); ++f) {
    const FieldValue value = record.field(f);
    const std::size_t frame = frame_bytes(schema.fields[f]);
    // A corrupt record may be shorter than its row; the assembly finds that out, and names it.
    const bool in_bounds = (std::size_t{row.start} + row.length) * frame <= value.bytes.size();
    needed[f] = in_parts && per_frame(schema.fields[f]) && in_bounds
                    ? value.bytes.subspan(row.start * frame, row.length * frame)
                    : value.bytes;
  }
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

/// All records are looked up before the first is read: no cache has the lines that a record begins
/// with, and so the processor waits for those of all rows at once.
class RecordReader final : public BatchReader {
 public:
  RecordReader(const Snapshot& snapshot, std::span<const Row> rows, RowPlaces places)
      : snapshot_(snapshot), rows_(rows), places_(std::move(places)) {
    for (const auto& place : places_) {
      if (place) prefetch_lines(place->bytes, kHeaderBytes);
    }
  }

  Result<void> read(std::size_t r, RowBytes& row) override {
    const Ordinal ordinal{rows_[r].ordinal};
    // What has no place is looked up once more, for the reason.
    const auto record =
        places_[r] ? snapshot_.record(ordinal, *places_[r]) : snapshot_.record(ordinal);
    if (!record) return record.error();
    row.key.resize(record->key().size());
    row.fields.resize(snapshot_.schema().fields.size());
    // The key is copied: it is read again while the batch is laid out, outside of a guard.
    const bool is_read = guarded([&] {
      for (std::size_t f = 0; f < row.fields.size(); ++f) row.fields[f] = record->field(f);
      std::memcpy(row.key.data(), record->key().data(), row.key.size());
    });
    if (!is_read) return map_faulted();
    return check_against_index(snapshot_, row.fields, rows_[r]);
  }

  /// Without a lock on the dataset a writer may have written to what was just copied.
  Result<void> check_unchanged() const override { return snapshot_.check_unchanged(); }

 private:
  const Snapshot& snapshot_;
  std::span<const Row> rows_;
  RowPlaces places_;
};

}  // namespace

std::unique_ptr<BatchReader> read_records(const Snapshot& snapshot, std::span<const Row> rows,
                                          RowPlaces places) {
  return std::make_unique<RecordReader>(snapshot, rows, std::move(places));
}

void EpochSource::prepare_part(const Row& row) const {
  const auto record = snapshot->record(Ordinal{row.ordinal});
  // The assembly meets the same error, and reports it for the batch.
  if (!record) return;
  std::vector<MapBytes> needed(schema().fields.size());  // not within: a fault frees nothing
  // A recipe needs all of a sequence for each part of the row that it makes of it.
  const bool in_parts = lengths == nullptr;
  if (!guarded([&] { needed_of(schema(), *record, row, in_parts, needed); })) return;
  // All are asked for before the first is waited for.
  for (const MapBytes bytes : needed) prefetch(bytes);
  for (const MapBytes bytes : needed) bring_in(bytes);
}

void EpochSource::prepare(BatchIndex index) const {
  thread_local std::vector<Row> rows;  // grows to the largest batch once
  if (index.value >= plan.batches()) return;
  plan.rows(index, rows);
  RowPlaces places = found->find(*snapshot, index, rows);
  // Of a chunk only some pages are needed, and only its record says which.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_whole(rows[i])) places[i].reset();
  }
  // All are asked for before the first is waited for, so that the disk sees them at once.
  for (const auto& place : places) {
    if (place) prefetch(place->bytes);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].length == 0) continue;
    if (!places[i]) {
      prepare_part(rows[i]);
      continue;
    }
    // Before it is verified, which reads it page by page.
    bring_in(places[i]->bytes);
    static_cast<void>(snapshot->record(Ordinal{rows[i].ordinal}, *places[i]));
  }
}

std::unique_ptr<BatchReader> EpochSource::read(BatchIndex index, std::span<const Row> rows) const {
  return read_records(*snapshot, rows, found->take(*snapshot, index, rows));
}

}  // namespace batchwright
