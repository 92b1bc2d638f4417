#pragma once

#include "storage/features/recipe/steps/step.h"

namespace batchwright {

/// Lines of one style, of which a text has those of all at its end.
void describe_style(const StyleSettings& style, RecipeLines& lines);

}  // namespace batchwright
