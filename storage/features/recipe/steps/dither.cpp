#include "storage/features/recipe/steps/step.h"

namespace batchwright {

const RowStep kDitherStep = {
    .is_asked = [](const RecipeSettings& settings) { return settings.dither > 0; },
    .draws = [](const RecipeSettings&) { return true; },
    .check = [](const RecipeSettings& settings) { return check_dither(settings.dither); },
    .describe = [](const RecipeSettings& settings,
                   RecipeLines& lines) { lines.add("dither", settings.dither); },
    .apply = [](const StepInput& input, RowInWork& row) -> Result<void> {
      add_dither(input.key, input.data.settings.dither, input.data.sample_scale, row.sound);
      return {};
    },
};

}  // namespace batchwright
