#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/assembly/batch_source.h"
#include "daemon/assembly/sources/row_cache.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// What rows that a recipe makes are made by.
struct RowRecipe {
  const Recipe& recipe;
  const DrawKeys& draws;
  RowCache& kept;
};

/// Makes rows of the sequences that `from` reads; row r is one of `epochs`[r]. Lifetime: all that
/// is named stays.
std::unique_ptr<BatchReader> make_rows(const RowRecipe& by, std::span<const Row> rows,
                                       std::span<const Epoch> epochs,
                                       std::unique_ptr<BatchReader> from);

/// The batches of another source, with rows that a recipe makes of its sequences.
class RecipeSource final : public BatchSource {
 public:
  /// `lengths` of the rows that are made, by ordinal, as `from` has planned them. `draws`: what the
  /// draws of a row depend on. `kept`: rows of which other parts follow.
  RecipeSource(std::shared_ptr<const BatchSource> from, std::shared_ptr<const Recipe> recipe,
               SharedLengths lengths, DrawKeys draws, std::shared_ptr<RowCache> kept)
      : from_(std::move(from)),
        recipe_(std::move(recipe)),
        lengths_(std::move(lengths)),
        draws_(std::move(draws)),
        kept_(std::move(kept)) {}

  EpochOutline outline() const override { return from_->outline(); }
  const Schema& schema() const override { return recipe_->schema(); }
  BatchFigures figures(BatchIndex index) const override { return from_->figures(index); }
  void rows(BatchIndex index, std::vector<Row>& rows) const override { from_->rows(index, rows); }
  std::uint32_t parts_of(const Row& row) const override { return from_->parts_of(row); }
  std::uint64_t real_frames(const Row& row) const override {
    return recipe_->real_frames(row.start, row.length);
  }
  BatchCounts counts(BatchIndex index) const override;
  void prepare(BatchIndex index) const override { from_->prepare(index); }
  std::unique_ptr<BatchReader> read(BatchIndex index, std::span<const Row> rows) const override;

 private:
  std::shared_ptr<const BatchSource> from_;
  std::shared_ptr<const Recipe> recipe_;
  SharedLengths lengths_;
  DrawKeys draws_;
  std::shared_ptr<RowCache> kept_;
};

}  // namespace batchwright
