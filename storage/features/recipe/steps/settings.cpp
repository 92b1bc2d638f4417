#include "storage/features/recipe/steps/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "storage/features/recipe/steps/step.h"

namespace batchwright {
namespace {

Error bad_recipe(const std::string& what) { return {ErrorCode::bad_configuration, what}; }

void describe_steps(RowStep::On on, const RecipeSettings& settings, RecipeLines& lines) {
  for (const RowStep* step : recipe_steps()) {
    const bool has_lines = step->on == on && step->describe != nullptr;
    if (has_lines && step->is_asked(settings)) step->describe(settings, lines);
  }
}

void describe_sound(const RecipeSettings& settings, RecipeLines& lines) {
  lines.add("sample_rate", settings.sample_rate);
  lines.add("resampler", settings.resampler == ResamplerKind::soxr ? "soxr" : "sinc");
  std::vector<std::uint32_t> thousandths;
  for (const Speed speed : settings.speeds) thousandths.push_back(speed.thousandths);
  if (!thousandths.empty()) lines.add("speeds", fmt::format("{}", fmt::join(thousandths, ",")));
  describe_steps(RowStep::On::sound, settings, lines);
  lines.add("like", settings.like);
  if (settings.like.empty()) {
    lines.add("sound", dtype_name(settings.sound));
  } else {
    lines.add("features", feature_word(settings.features));
    for (const auto& [name, text] : settings.options) lines.add(name, text);
  }
  lines.add("field", settings.field);
  if (!settings.aligned.empty())
    lines.add("aligned", fmt::format("{}", fmt::join(settings.aligned, ",")));
}

Result<void> check_drawn(const RecipeSettings& settings) {
  for (auto field = settings.drawn.begin(); field != settings.drawn.end(); ++field) {
    if (std::find(settings.drawn.begin(), field, *field) != field) {
      return bad_recipe(fmt::format("drawn: \"{}\" twice; allowed: once", drawn_name(*field)));
    }
    const bool of_speed = *field == DrawnField::speed;
    if (of_speed ? !settings.speeds.empty() : !settings.styles.empty()) continue;
    return bad_recipe(fmt::format("drawn: \"{}\", and nothing of that is drawn; allowed: with {}",
                                  drawn_name(*field), of_speed ? "speeds" : "[[feed.style]]"));
  }
  return {};
}

}  // namespace

std::string_view drawn_name(DrawnField field) {
  switch (field) {
    case DrawnField::style: return "style";
    case DrawnField::snr_db: return "snr_db";
    case DrawnField::speed: return "speed";
    case DrawnField::room: return "room";
  }
  return "";
}

Result<void> check_recipe(const RecipeSettings& settings) {
  if (settings.draws < 1 || settings.draws > 2) {
    return bad_recipe(fmt::format("draws {}; allowed: 1 or 2", settings.draws));
  }
  if (auto sound = check_drawn(settings); !sound) return sound;
  if (settings.stacking != Stacking{} && settings.keep.of > 1) {
    return bad_recipe("stack, stride and keep_one_of; allowed: one of the two ways");
  }
  if (!settings.like.empty()) {
    auto options = front_end_like(settings.like, settings.features);
    if (!options) return bad_recipe(fmt::format("like: {}", options.error().message));
    for (const auto& [name, text] : settings.options) {
      if (auto set = set_option(*options, name, text); !set) return bad_recipe(set.error().message);
    }
  } else if (!settings.options.empty()) {
    return bad_recipe(fmt::format("{} without like; allowed: options of a front end with one",
                                  settings.options.front().first));
  }
  for (const RowStep* step : recipe_steps()) {
    if (step->check == nullptr) continue;
    if (auto sound = step->check(settings); !sound) return bad_recipe(sound.error().message);
  }
  return {};
}

bool asks_anything(const RecipeSettings& settings) {
  RecipeSettings none;
  none.draws = settings.draws;
  none.max_seconds = settings.max_seconds;
  return settings != none;
}

bool draws_anything(const RecipeSettings& settings) {
  const auto steps = recipe_steps();
  // An offset of one frame of one draws nothing, and is in texts that were written before.
  return settings.keep_random || settings.speeds.size() > 1 ||
         std::any_of(steps.begin(), steps.end(), [&settings](const RowStep* step) {
           return step->draws != nullptr && step->is_asked(settings) && step->draws(settings);
         });
}

std::string recipe_text(const RecipeSettings& settings) {
  if (!asks_anything(settings)) return {};
  RecipeLines lines;
  describe_sound(settings, lines);
  describe_steps(RowStep::On::frames, settings, lines);
  lines.add("label_slack", settings.label_slack);
  for (std::size_t k = 0; k < settings.styles.size(); ++k) {
    lines.within(fmt::format("features.style{}.", k));
    describe_style(settings.styles[k], lines);
  }
  if (!settings.drawn.empty()) {
    std::vector<std::string_view> names;
    for (const DrawnField field : settings.drawn) names.push_back(drawn_name(field));
    lines.within("features.");
    lines.add("drawn", fmt::format("{}", fmt::join(names, ",")));
  }
  // Texts from before there was a second version have no such line.
  if (settings.draws != 1 && draws_anything(settings)) {
    lines.within("features.");
    lines.add("draws", settings.draws);
  }
  return lines.take();
}

}  // namespace batchwright
