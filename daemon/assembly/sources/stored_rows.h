#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "daemon/assembly/batch_source.h"
#include "daemon/assembly/sources/row_cache.h"
#include "storage/dataset/dataset.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// The rows of a feed of a dataset by their names, of any epoch and whatever is planned: as that
/// feed's batches have them, since a row depends on its sequence, the recipe and its draws alone.
/// Threads: any.
class StoredRows {
 public:
  /// `recipe`: null where rows are what is stored. `draws`: of any epoch. `kept`: rows of which
  /// other parts may follow.
  StoredRows(const Fingerprint& of, std::shared_ptr<const Snapshot> stored,
             std::shared_ptr<const Recipe> recipe, DrawKeys draws, std::shared_ptr<RowCache> kept)
      : fingerprint_(of),
        snapshot_(std::move(stored)),
        recipe_(std::move(recipe)),
        draws_(std::move(draws)),
        kept_(std::move(kept)) {}

  const Fingerprint& fingerprint() const { return fingerprint_; }
  std::uint64_t sequences() const { return snapshot_->sequences(); }
  /// The fields of the rows, before casts.
  const Schema& schema() const { return recipe_ ? recipe_->schema() : snapshot_->schema(); }
  /// Frames of the row of a sequence below sequences(): all of it. Reads no map. Errors: those of
  /// Recipe::measure().
  Result<std::uint32_t> length(Epoch epoch, Ordinal ordinal) const;
  /// Length of a sequence in an independent field of the schema.
  std::uint32_t own_length(std::size_t field, Ordinal ordinal) const;

  /// Brings what the rows are made of into memory. Waits for the disk.
  void prepare(std::span<const Row> rows) const;
  /// Reads rows, or parts of rows; row r is one of `epochs`[r]. Lifetime: both lists, and this
  /// object, stay as long as the reader.
  std::unique_ptr<BatchReader> read(std::span<const Row> rows, std::span<const Epoch> epochs) const;

 private:
  const Fingerprint fingerprint_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const std::shared_ptr<const Recipe> recipe_;
  const DrawKeys draws_;
  const std::shared_ptr<RowCache> kept_;
};

}  // namespace batchwright
