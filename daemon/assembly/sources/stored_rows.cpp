#include "daemon/assembly/sources/stored_rows.h"

#include "daemon/assembly/sources/epoch_source.h"
#include "daemon/assembly/sources/recipe_source.h"
#include "daemon/assembly/sources/row_locations.h"

namespace batchwright {

Result<std::uint32_t> StoredRows::length(Epoch epoch, Ordinal ordinal) const {
  if (!recipe_) return snapshot_->lengths()[ordinal.value];
  return recipe_->length(*snapshot_, ordinal, draws_.at(epoch).of(ordinal, 0));
}

std::uint32_t StoredRows::own_length(std::size_t field, Ordinal ordinal) const {
  const std::size_t stored = recipe_ ? recipe_->stored_field(field) : field;
  return snapshot_->field_lengths(stored)[ordinal.value];
}

void StoredRows::prepare(std::span<const Row> rows) const {
  const RowPlaces places = look_up(*snapshot_, rows);
  // All are asked for before the first is waited for, so that the disk sees them at once.
  for (const auto& place : places) {
    if (place) prefetch(place->bytes);
  }
  for (const auto& place : places) {
    if (place) bring_in(place->bytes);
  }
}

std::unique_ptr<BatchReader> StoredRows::read(std::span<const Row> rows,
                                              std::span<const Epoch> epochs) const {
  auto records = read_records(*snapshot_, rows, look_up(*snapshot_, rows));
  if (!recipe_) return records;
  return make_rows({*recipe_, draws_, *kept_}, rows, epochs, std::move(records));
}

}  // namespace batchwright
