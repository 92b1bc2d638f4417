#include "daemon/assembly/sources/recipe_source.h"

#include <fmt/core.h>

#include "daemon/assembly/row_parts.h"

namespace batchwright {
namespace {

/// What making rows takes. It grows to the longest row of the largest batch, and then stays with
/// its thread.
struct RecipeScratch {
  RowMaker maker;
  std::vector<std::vector<MadeField>> rows;  ///< Whole ones, by their place in the batch.
};

thread_local std::unique_ptr<RecipeScratch> spare_scratch;

}  // namespace

class RecipeSource::Reader final : public BatchReader {
 public:
  Reader(const RecipeSource& source, BatchIndex index, std::span<const Row> rows)
      : source_(source), rows_(rows), from_(source.from_->read(index, rows)) {
    scratch_ = spare_scratch ? std::move(spare_scratch) : std::make_unique<RecipeScratch>();
    if (scratch_->rows.size() < rows.size()) scratch_->rows.resize(rows.size());
  }
  ~Reader() override { spare_scratch = std::move(scratch_); }

  Result<void> read(std::size_t r, RowBytes& row) override {
    if (auto stored = from_->read(r, stored_); !stored) return stored;
    const auto made = make(r);
    if (!made) return made.error();
    const Recipe& recipe = *source_.recipe_;
    row.key = stored_.key;
    row.fields.resize(recipe.schema().fields.size());
    for (std::size_t f = 0; f < row.fields.size(); ++f) {
      row.fields[f] = stored_.fields[recipe.stored_field(f)];
      if (recipe.makes(f)) row.fields[f].bytes = (**made)[f].bytes;
    }
    return {};
  }

  Result<void> check_unchanged() const override { return from_->check_unchanged(); }

  MadeRows made() override {
    figures_.step_seconds = scratch_->maker.take_seconds();
    return figures_;
  }

 private:
  /// Into memory of this reader, or that others share.
  Result<const std::vector<MadeField>*> make(std::size_t r) {
    const Row& row = rows_[r];
    if (std::uint64_t{row.start} + row.length > (*source_.lengths_)[row.ordinal]) {
      return Error{ErrorCode::internal, "the plan's row passes the end of its sequence"};
    }
    if (is_whole(row)) {
      if (auto made = make_whole(row, scratch_->rows[r]); !made) return made.error();
      return &scratch_->rows[r];
    }
    const KeptRows::Part part{(row.flags & kRowLast) != 0, source_.parts_of(row)};
    const std::uint32_t use = source_.draws_.count_uses() ? row.use : 0;
    auto kept = source_.kept_->get({row.ordinal, use}, part, [&]() -> Result<KeptRow> {
      const auto made = std::make_shared<std::vector<MadeField>>();
      if (auto done = make_whole(row, *made); !done) return done.error();
      return KeptRow(made);
    });
    if (!kept) return kept.error();
    kept_.push_back(*std::move(kept));
    return kept_.back().get();
  }

  Result<void> make_whole(const Row& row, std::vector<MadeField>& made) {
    const Recipe& recipe = *source_.recipe_;
    RowMaker& maker = scratch_->maker;
    const auto draws_of_row = source_.draws_.of(Ordinal{row.ordinal}, row.use);
    if (auto done = maker.make(recipe, draws_of_row, stored_.fields, made); !done) {
      return Error{done.error().code,
                   fmt::format("sequence {}: {}", row.ordinal, done.error().message)};
    }
    const RowDraws& draws = maker.draws();
    figures_.sound_seconds += draws.stored_seconds;
    figures_.samples_saturated += draws.saturated;
    figures_.noise_left_out += draws.noise.applies && !draws.mix.added ? 1 : 0;
    const std::uint32_t length = (*source_.lengths_)[row.ordinal];
    for (std::size_t f = 0; f < made.size(); ++f) {
      if (!recipe.makes_frames(f) || made[f].length == length) continue;
      return Error{ErrorCode::internal,
                   fmt::format("sequence {}: a row of {} frames was made, {} were planned",
                               row.ordinal, made[f].length, length)};
    }
    return {};
  }

  const RecipeSource& source_;
  std::span<const Row> rows_;
  std::unique_ptr<BatchReader> from_;
  std::unique_ptr<RecipeScratch> scratch_;
  RowBytes stored_;  ///< The current row as it is stored.
  std::vector<KeptRow> kept_;
  MadeRows figures_;
};

BatchCounts RecipeSource::counts(BatchIndex index) const {
  std::vector<Row> planned;
  rows(index, planned);
  BatchCounts counts{from_->counts(index).rows, 0};
  for (const Row& row : planned) counts.frames += row.weight == 0 ? 0 : real_frames(row);
  return counts;
}

std::unique_ptr<BatchReader> RecipeSource::read(BatchIndex index, std::span<const Row> rows) const {
  return std::make_unique<Reader>(*this, index, rows);
}

}  // namespace batchwright
