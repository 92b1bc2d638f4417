#include <numeric>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

/// Subtracts the mean of all samples of the sequence, as `sox` and torchaudio users do by hand; the
/// front end's own option does so for each frame. The sum is of double precision.
Result<void> remove_dc_offset(const StepInput&, RowInWork& row) {
  if (row.sound.empty()) return {};
  const double sum = std::accumulate(row.sound.begin(), row.sound.end(), 0.0);
  const auto mean = static_cast<float>(sum / static_cast<double>(row.sound.size()));
  for (float& sample : row.sound) sample -= mean;
  return {};
}

}  // namespace

const RowStep kDcOffsetStep = {
    .is_asked = [](const RecipeSettings& settings) { return settings.dc_offset_removed; },
    .describe = [](const RecipeSettings&, RecipeLines& lines) { lines.add("dc_offset", "remove"); },
    .apply = remove_dc_offset,
};

}  // namespace batchwright
