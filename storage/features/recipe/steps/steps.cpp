#include <fmt/format.h>

#include <utility>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {

std::span<const RowStep* const> recipe_steps() {
  static constexpr const RowStep* kSteps[] = {
      &kDcOffsetStep, &kStyleStep,  &kDitherStep,    &kCmvnStep,  &kSpecAugmentStep,
      &kDeltasStep,   &kSpliceStep, &kKeepOneOfStep, &kStackStep, &kLabelDelayStep,
  };
  return kSteps;
}

void RowInWork::note_time(RecipeStep step) {
  const auto now = std::chrono::steady_clock::now();
  seconds[static_cast<std::size_t>(step)] += std::chrono::duration<double>(now - begun).count();
  begun = now;
}

void RecipeLines::add_paths(std::string_view key, const std::vector<std::filesystem::path>& paths) {
  for (const auto& path : paths) add(key, path.string());
}

void RecipeLines::add_text(std::string_view key, std::string_view value) {
  text_ += fmt::format("{}{} = {}\n", prefix_, key, value);
}

}  // namespace batchwright
