#include <fmt/format.h>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

Error bad_cmvn(const char* what) { return {ErrorCode::bad_configuration, what}; }

Result<void> check_cmvn(const RecipeSettings& settings) {
  if (!settings.cmvn) return {};
  const CmvnSettings& cmvn = settings.normalise;
  const CmvnKind kind = cmvn.options.kind;
  const bool stored = kind == CmvnKind::global || kind == CmvnKind::speaker;
  if (stored == cmvn.statistics.empty()) {
    return bad_cmvn(stored ? "cmvn global or speaker without cmvn_statistics; allowed: the file "
                             "that `batchwright cmvn` wrote"
                           : "cmvn_statistics with cmvn utterance or sliding; allowed: with "
                             "global and speaker");
  }
  if ((kind == CmvnKind::speaker) == cmvn.speaker.empty()) {
    return bad_cmvn(
        "cmvn_speaker names the field of cmvn = \"speaker\"; allowed: both, or "
        "neither");
  }
  return check(cmvn.options);
}

void describe_cmvn(const RecipeSettings& settings, RecipeLines& lines) {
  const CmvnSettings& cmvn = settings.normalise;
  lines.add("cmvn", static_cast<int>(cmvn.options.kind));
  lines.add("cmvn_variance", cmvn.options.variance);
  if (cmvn.options.kind == CmvnKind::sliding) lines.add("cmvn_window", cmvn.options.window);
  if (!cmvn.speaker.empty()) lines.add("cmvn_speaker", cmvn.speaker);
}

Result<void> normalise(const StepInput& input, RowInWork& row) {
  if (row.frames.empty()) return {};
  const CmvnSettings& settings = input.data.settings.normalise;
  const StepData& known = input.data;
  if (!known.statistics) {
    normalise_own(settings.options, input.data.dimensions, row.frames, row.frame_scratch.cmvn);
    return {};
  }
  const CmvnSums* sums = &known.statistics->all;
  if (settings.options.kind == CmvnKind::speaker) {
    const auto speaker = speaker_name(known.speaker, input.values);
    if (!speaker) return speaker.error();
    const auto found = known.statistics->speakers.find(*speaker);
    if (found == known.statistics->speakers.end()) {
      return Error{ErrorCode::not_found, fmt::format("speaker {} has no statistics in {}", *speaker,
                                                     settings.statistics.string())};
    }
    sums = &found->second;
  }
  normalise_by(*sums, settings.options.variance, row.frames, row.frame_scratch.cmvn);
  return {};
}

}  // namespace

const RowStep kCmvnStep = {
    .on = RowStep::On::frames,
    .timed = RecipeStep::frames,
    .is_asked = [](const RecipeSettings& settings) { return settings.cmvn; },
    .check = check_cmvn,
    .describe = describe_cmvn,
    .apply = normalise,
};

}  // namespace batchwright
