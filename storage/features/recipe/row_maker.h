#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/recipe/opened_recipe.h"

namespace batchwright {

/// A field of a row that was made.
struct MadeField {
  std::vector<std::byte> bytes;
  std::uint32_t length = 0;
};

/// Makes rows by a recipe, with memory that is used again: it grows to the longest row.
/// Threads: one at a time.
class RowMaker {
 public:
  /// `key`: of Recipe::draw_keys(). `values` are those of the stored fields, which may lie in a
  /// map. `row` becomes as long as the recipe's fields; those that are not made stay as they are.
  /// Errors: corrupt_record, naming what is wrong; store_unavailable; not_found (a speaker without
  /// statistics).
  Result<void> make(const Recipe& recipe, const DrawKey& key, std::span<const FieldValue> values,
                    std::vector<MadeField>& row);

  /// Of the last row.
  const RowDraws& draws() const { return row_.draws; }
  /// Sound as the front end heard it; empty where there was none.
  std::span<const float> sound() const { return row_.sound; }
  /// Sound as it was stored.
  std::span<const float> stored_sound() const { return stored_; }

  /// Seconds that each step took since the last call.
  std::array<double, kRecipeSteps> take_seconds();

 private:
  Result<void> make_sound(const Recipe& recipe, const StepInput& input);
  Result<void> make_frames(const Recipe& recipe, const StepInput& input);
  Result<void> apply(std::span<const RowStep* const> steps, const StepInput& input);
  void put_primary(const Recipe& recipe, MadeField& out);
  void put_drawn(DrawnField drawn, MadeField& out) const;
  Result<void> put_aligned(const Recipe& recipe, std::size_t field, const FieldValue& value,
                           const RowLengths& lengths, MadeField& out);

  std::vector<float> stored_;
  RowInWork row_;
};

}  // namespace batchwright
