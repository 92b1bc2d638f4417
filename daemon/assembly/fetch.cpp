#include "daemon/assembly/fetch.h"

#include <vector>

#include "daemon/assembly/row_parts.h"

namespace batchwright {
namespace {

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

}  // namespace

void fetch_part(const EpochSource& source, const Row& row) {
  const Snapshot& snapshot = *source.snapshot;
  const auto record = snapshot.record(Ordinal{row.ordinal});
  // The assembly meets the same error, and reports it for the batch.
  if (!record) return;
  const Schema& schema = snapshot.schema();
  std::vector<MapBytes> needed(schema.fields.size());  // not within: a fault frees nothing
  // A recipe needs all of a sequence for each part of the row that it makes of it.
  const bool in_parts = source.lengths == nullptr;
  if (!guarded([&] { needed_of(schema, *record, row, in_parts, needed); })) return;
  // All are asked for before the first is waited for.
  for (const MapBytes bytes : needed) prefetch(bytes);
  for (const MapBytes bytes : needed) bring_in(bytes);
}

void fetch_pages(const EpochSource& source, BatchIndex index) {
  thread_local std::vector<Row> rows;  // grows to the largest batch once
  if (index.value >= source.plan.batches()) return;
  source.plan.rows(index, rows);
  const Snapshot& snapshot = *source.snapshot;
  RowPlaces places = source.found->find(snapshot, index, rows);
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
      fetch_part(source, rows[i]);
      continue;
    }
    // Before it is verified, which reads it page by page.
    bring_in(places[i]->bytes);
    static_cast<void>(snapshot.record(Ordinal{rows[i].ordinal}, *places[i]));
  }
}

}  // namespace batchwright
