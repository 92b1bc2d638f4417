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

/// What is known of the rows that are made.
struct RowsToMake {
  std::span<const Row> rows;
  std::span<const Epoch> epochs;                        ///< Of each; empty: that of the draws.
  const std::vector<std::uint32_t>* lengths = nullptr;  ///< As planned, by ordinal; null: unknown.
  const BatchSource* plan = nullptr;                    ///< Null: there is none.
};

class RowReader final : public BatchReader {
 public:
  RowReader(const RowRecipe& by, const RowsToMake& wanted, std::unique_ptr<BatchReader> from)
      : by_(by), wanted_(wanted), from_(std::move(from)) {
    scratch_ = spare_scratch ? std::move(spare_scratch) : std::make_unique<RecipeScratch>();
    if (scratch_->rows.size() < wanted.rows.size()) scratch_->rows.resize(wanted.rows.size());
  }
  ~RowReader() override { spare_scratch = std::move(scratch_); }

  Result<void> read(std::size_t r, RowBytes& row) override {
    if (auto stored = from_->read(r, stored_); !stored) return stored;
    const auto made = make(r);
    if (!made) return made.error();
    const Recipe& recipe = by_.recipe;
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
    const Row& row = wanted_.rows[r];
    if (wanted_.lengths != nullptr &&
        std::uint64_t{row.start} + row.length > (*wanted_.lengths)[row.ordinal]) {
      return Error{ErrorCode::internal, "the plan's row passes the end of its sequence"};
    }
    if (is_whole(row)) {
      if (auto made = make_whole(r, scratch_->rows[r]); !made) return made.error();
      return &scratch_->rows[r];
    }
    const std::uint32_t chunks = wanted_.plan != nullptr ? wanted_.plan->parts_of(row) : 0;
    const RowCache::Part part{(row.flags & kRowLast) != 0, chunks};
    const std::uint32_t use = by_.draws.count_uses() ? row.use : 0;
    const std::uint64_t epoch = wanted_.epochs.empty() ? 0 : wanted_.epochs[r].value;
    auto kept = by_.kept.get({row.ordinal, use, epoch}, part, [&]() -> Result<CachedRow> {
      const auto made = std::make_shared<std::vector<MadeField>>();
      if (auto done = make_whole(r, *made); !done) return done.error();
      return CachedRow(made);
    });
    if (!kept) return kept.error();
    kept_.push_back(*std::move(kept));
    return kept_.back().get();
  }

  auto key_of(std::size_t r) const {
    const Row& row = wanted_.rows[r];
    const Ordinal ordinal{row.ordinal};
    if (wanted_.epochs.empty()) return by_.draws.of(ordinal, row.use);
    return by_.draws.at(wanted_.epochs[r]).of(ordinal, row.use);
  }

  Result<void> make_whole(std::size_t r, std::vector<MadeField>& made) {
    const Recipe& recipe = by_.recipe;
    const std::uint64_t ordinal = wanted_.rows[r].ordinal;
    RowMaker& maker = scratch_->maker;
    if (auto done = maker.make(recipe, key_of(r), stored_.fields, made); !done) {
      return Error{done.error().code,
                   fmt::format("sequence {}: {}", ordinal, done.error().message)};
    }
    const RowDraws& draws = maker.draws();
    figures_.sound_seconds += draws.stored_seconds;
    figures_.samples_saturated += draws.saturated;
    figures_.noise_left_out += draws.noise.applies && !draws.mix.added ? 1 : 0;
    if (wanted_.lengths == nullptr) return {};
    const std::uint32_t length = (*wanted_.lengths)[ordinal];
    for (std::size_t f = 0; f < made.size(); ++f) {
      if (!recipe.makes_frames(f) || made[f].length == length) continue;
      return Error{ErrorCode::internal,
                   fmt::format("sequence {}: a row of {} frames was made, {} were planned", ordinal,
                               made[f].length, length)};
    }
    return {};
  }

  RowRecipe by_;
  RowsToMake wanted_;
  std::unique_ptr<BatchReader> from_;
  std::unique_ptr<RecipeScratch> scratch_;
  RowBytes stored_;  ///< The current row as it is stored.
  std::vector<CachedRow> kept_;
  MadeRows figures_;
};

}  // namespace

std::unique_ptr<BatchReader> make_rows(const RowRecipe& by, std::span<const Row> rows,
                                       std::span<const Epoch> epochs,
                                       std::unique_ptr<BatchReader> from) {
  return std::make_unique<RowReader>(by, RowsToMake{rows, epochs}, std::move(from));
}

BatchCounts RecipeSource::counts(BatchIndex index) const {
  std::vector<Row> planned;
  rows(index, planned);
  BatchCounts counts{from_->counts(index).rows, 0};
  for (const Row& row : planned) counts.frames += row.weight == 0 ? 0 : real_frames(row);
  return counts;
}

std::unique_ptr<BatchReader> RecipeSource::read(BatchIndex index, std::span<const Row> rows) const {
  return std::make_unique<RowReader>(RowRecipe{*recipe_, draws_, *kept_},
                                     RowsToMake{rows, {}, lengths_.get(), from_.get()},
                                     from_->read(index, rows));
}

}  // namespace batchwright
