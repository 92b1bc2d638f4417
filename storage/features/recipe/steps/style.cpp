#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

Error bad_style(const std::string& what) { return {ErrorCode::bad_configuration, what}; }

Result<void> check_style(const StyleSettings& style) {
  if (!(style.weight >= 0 && std::isfinite(style.weight))) {
    return bad_style(fmt::format("weight {} of a style; allowed: 0 and up, finite", style.weight));
  }
  for (auto sound : {check(style.noise_draw), check(style.reverberation), check(style.gain),
                     check(style.telephone)}) {
    if (!sound) return sound;
  }
  return {};
}

Result<void> check_styles(const RecipeSettings& settings) {
  double sum = 0;
  for (const StyleSettings& style : settings.styles) {
    if (auto sound = check_style(style); !sound) return sound;
    sum += style.weight;
  }
  if (settings.styles.empty() || sum > 0) return {};
  return bad_style(fmt::format("weight 0 of {}; allowed: one style with a weight above 0",
                               settings.styles.size() == 1 ? "the only style" : "every style"));
}

Result<void> add_noise_of(const SoundSet& set, const NoiseOptions& options, const DrawKey& key,
                          RowInWork& row) {
  RowDraws& drawn = row.draws;
  RowInWork::SoundScratch& scratch = row.sound_scratch;
  Draws draws(key, DrawStage::noise);
  drawn.noise = draw_noise(draws, options, set.size());
  if (!drawn.noise.applies || row.sound.empty()) return {};
  const std::uint64_t there = set.samples(drawn.noise.source);
  drawn.noise_offset = draw_offset(draws, there, row.sound.size());
  // Of long noise only the piece is read.
  const bool is_long = there >= row.sound.size();
  auto read = set.read(drawn.noise.source, is_long ? drawn.noise_offset : 0,
                       is_long ? row.sound.size() : there, scratch.noise, scratch.sets);
  if (!read) return read;
  drawn.mix =
      add_noise(scratch.noise, is_long ? 0 : drawn.noise_offset, drawn.noise.snr_db, row.sound);
  return {};
}

Result<void> apply_style(const StepInput& input, RowInWork& row) {
  RowDraws& drawn = row.draws;
  RowInWork::SoundScratch& scratch = row.sound_scratch;
  drawn.style = Draws(input.key, DrawStage::style).pick(input.data.weights);
  const StyleSettings& style = input.data.settings.styles[drawn.style];
  const StepData::Sources& sources = input.data.sources[drawn.style];
  if (sources.rooms) {
    drawn.room = draw_room(input.key, style.reverberation, sources.rooms->size());
    if (drawn.room.applies) {
      const auto room = sources.rooms->room(drawn.room.room, scratch.sets);
      if (!room) return room.error();
      scratch.reverberation.apply(**room, style.reverberation.normalise, row.sound);
    }
    row.note_time(RecipeStep::reverberation);
  }
  if (sources.noise) {
    auto added = add_noise_of(*sources.noise, style.noise_draw, input.key, row);
    if (!added) return added;
  }
  if (style.gain != GainOptions{}) {
    drawn.gain_db = draw_gain_db(input.key, style.gain);
    apply_gain(drawn.gain_db, row.sound);
  }
  row.note_time(RecipeStep::noise);
  if (style.telephone.probability > 0) {
    drawn.telephone = draw_telephone(input.key, style.telephone);
    if (drawn.telephone.applies) {
      auto called = apply_telephone_band(drawn.telephone.law, input.data.rate, row.sound,
                                         scratch.soxr, scratch.telephone);
      if (!called) return called;
    }
    row.note_time(RecipeStep::telephone);
  }
  return {};
}

}  // namespace

void describe_style(const StyleSettings& style, RecipeLines& lines) {
  lines.add("weight", style.weight);
  if (!style.noise.empty()) {
    lines.add_paths("noise", style.noise);
    lines.add("noise_probability", style.noise_draw.probability);
    lines.add("snr_db",
              fmt::format("[{}, {}]", style.noise_draw.snr_low_db, style.noise_draw.snr_high_db));
  }
  if (!style.rooms.empty()) {
    lines.add_paths("rooms", style.rooms);
    lines.add("room_probability", style.reverberation.probability);
    lines.add("room_normalise", style.reverberation.normalise);
  }
  if (style.gain != GainOptions{}) {
    lines.add("gain_db", fmt::format("[{}, {}]", style.gain.low_db, style.gain.high_db));
  }
  if (style.telephone.probability > 0) {
    lines.add("telephone_probability", style.telephone.probability);
    lines.add("telephone_law", static_cast<int>(style.telephone.law));
  }
}

/// Rooms, noise, gain and telephone of the style that was drawn, in this order.
const RowStep kStyleStep = {
    .is_asked = [](const RecipeSettings& settings) { return !settings.styles.empty(); },
    .draws = [](const RecipeSettings&) { return true; },
    .check = check_styles,
    .apply = apply_style,
};

}  // namespace batchwright
