#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

void describe_masks(const RecipeSettings& settings, RecipeLines& lines) {
  const SpecAugmentOptions& options = settings.masks;
  lines.add("spec_augment_probability", options.probability);
  lines.add("time_warp", options.time_warp);
  if (options.adaptive_masks) {
    lines.add("adaptive_masks", *options.adaptive_masks);
    lines.add("adaptive_width", options.adaptive_width.value_or(0));
  } else {
    lines.add("time_masks", options.time_masks);
    lines.add("time_width", options.time_width);
    lines.add("time_share", options.time_share);
  }
  lines.add("freq_masks", options.freq_masks);
  lines.add("freq_width", options.freq_width);
  lines.add("mask_mean", options.mean);
  lines.add("mask_value", options.mask_value);
}

Result<void> mask(const StepInput& input, RowInWork& row) {
  const SpecAugmentOptions& options = input.data.settings.masks;
  const std::uint32_t dimensions = input.data.dimensions;
  SpecAugmentDraw& drawn = row.draws.masks;
  draw_spec_augment(input.key, options, static_cast<std::uint32_t>(input.lengths.frames),
                    dimensions, drawn);
  apply_spec_augment(drawn, options, dimensions, row.frames, row.frame_scratch.warp);
  return {};
}

}  // namespace

const RowStep kSpecAugmentStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.spec_augment; },
    .draws = [](const RecipeSettings&) { return true; },
    .check =
        [](const RecipeSettings& settings) {
          return settings.spec_augment ? check(settings.masks) : Result<void>();
        },
    .describe = describe_masks,
    .apply = mask,
};

}  // namespace batchwright
