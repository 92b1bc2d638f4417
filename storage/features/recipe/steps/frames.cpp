// Steps that make frames wider, or fewer, or more of them.

#include <fmt/format.h>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

/// Where the step writes `frames` of `values` each, from the frames so far: they take its place
/// with done().
class OtherFrames {
 public:
  OtherFrames(RowInWork& row, std::size_t frames, std::size_t values) : row_(row), values_(values) {
    row.frame_scratch.other.resize(frames * values);
  }
  std::vector<float>& out() { return row_.frame_scratch.other; }
  Result<void> done() {
    row_.dimensions = values_;
    row_.frames.swap(row_.frame_scratch.other);
    return {};
  }

 private:
  RowInWork& row_;
  std::size_t values_;
};

std::size_t frames_of(const RowInWork& row) { return row.frames.size() / row.dimensions; }

Result<void> add_deltas(const StepInput& input, RowInWork& row) {
  const DeltaOptions& deltas = input.data.settings.deltas;
  OtherFrames other(row, frames_of(row), row.dimensions * (deltas.order + 1));
  append_deltas(deltas, row.dimensions, row.frames, other.out(), row.frame_scratch.deltas);
  return other.done();
}

Result<void> splice(const StepInput& input, RowInWork& row) {
  const Splicing& splicing = input.data.settings.splice;
  const std::size_t beside = splicing.left + 1 + splicing.right;
  OtherFrames other(row, frames_of(row), row.dimensions * beside);
  splice_frames(splicing, row.dimensions, row.frames, other.out());
  return other.done();
}

Result<void> keep_one_of(const StepInput& input, RowInWork& row) {
  const KeepOne& keep = input.lengths.keep;
  OtherFrames other(row, kept_length(frames_of(row), keep), row.dimensions);
  keep_frames(keep, row.dimensions, row.frames, other.out());
  return other.done();
}

Result<void> stack(const StepInput& input, RowInWork& row) {
  const Stacking& stacking = input.data.settings.stacking;
  OtherFrames other(row, stacked_length(frames_of(row), stacking), row.dimensions * stacking.stack);
  stack_frames(stacking, row.dimensions, row.frames, other.out());
  return other.done();
}

Result<void> delay(const StepInput& input, RowInWork& row) {
  const std::size_t count = frames_of(row);
  row.frames.resize(input.lengths.row * row.dimensions);
  extend_frames(count, row.dimensions, row.frames);
  return {};
}

}  // namespace

const RowStep kDeltasStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.deltas.order > 0; },
    .check = [](const RecipeSettings& settings) { return check(settings.deltas); },
    .describe =
        [](const RecipeSettings& settings, RecipeLines& lines) {
          lines.add("deltas", settings.deltas.order);
          lines.add("delta_window", settings.deltas.window);
          lines.add("delta_edges", settings.deltas.edges == DeltaEdges::htk ? "htk" : "kaldi");
        },
    .values = [](const RecipeSettings& settings) -> std::uint64_t {
      return std::uint64_t{settings.deltas.order} + 1;
    },
    .apply = add_deltas,
};

const RowStep kSpliceStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.splice != Splicing{}; },
    .check = [](const RecipeSettings& settings) { return check(settings.splice); },
    .describe =
        [](const RecipeSettings& settings, RecipeLines& lines) {
          lines.add("splice", fmt::format("[{}, {}]", settings.splice.left, settings.splice.right));
        },
    .values = [](const RecipeSettings& settings) -> std::uint64_t {
      return std::uint64_t{settings.splice.left} + 1 + settings.splice.right;
    },
    .apply = splice,
};

const RowStep kKeepOneOfStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.keep.of > 1; },
    .draws = [](const RecipeSettings& settings) { return settings.keep_random; },
    .check = [](const RecipeSettings& settings) { return check(settings.keep); },
    .describe =
        [](const RecipeSettings& settings, RecipeLines& lines) {
          lines.add("keep_one_of", settings.keep.of);
          lines.add("keep_offset", settings.keep_random ? std::string("random")
                                                        : std::to_string(settings.keep.offset));
        },
    .length = [](std::uint64_t frames, const RecipeSettings&,
                 const KeepOne& keep) { return kept_length(frames, keep); },
    .apply = keep_one_of,
};

const RowStep kStackStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.stacking != Stacking{}; },
    .check = [](const RecipeSettings& settings) { return check(settings.stacking); },
    .describe =
        [](const RecipeSettings& settings, RecipeLines& lines) {
          const Stacking& stacking = settings.stacking;
          lines.add("stack", stacking.stack);
          lines.add("stride", stacking.stride);
          lines.add("stack_align", static_cast<int>(stacking.align));
          lines.add("stack_end", static_cast<int>(stacking.end));
          lines.add("target_offset", stacking.target_offset);
        },
    .length = [](std::uint64_t frames, const RecipeSettings& settings,
                 const KeepOne&) { return stacked_length(frames, settings.stacking); },
    .values = [](const RecipeSettings& settings) -> std::uint64_t {
      return settings.stacking.stack;
    },
    .apply = stack,
};

const RowStep kLabelDelayStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.delay.frames > 0; },
    .check = [](const RecipeSettings& settings) { return check(settings.delay); },
    .describe =
        [](const RecipeSettings& settings, RecipeLines& lines) {
          lines.add("label_delay", settings.delay.frames);
          lines.add("label_extend", settings.delay.extend);
          lines.add("ignore_value", settings.ignore_value);
        },
    .length = [](std::uint64_t frames, const RecipeSettings& settings,
                 const KeepOne&) { return delayed_length(frames, settings.delay); },
    .apply = delay,
};

}  // namespace batchwright
