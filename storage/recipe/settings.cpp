#include "storage/recipe/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace batchwright {
namespace {

Error bad_recipe(const std::string& what) { return {ErrorCode::bad_configuration, what}; }

/// Lines of `key = value`.
class Lines {
 public:
  template <class Value>
  void add(std::string_view key, const Value& value) {
    text_ += fmt::format("{}{} = {}\n", prefix_, key, value);
  }
  void add_paths(std::string_view key, const std::vector<std::filesystem::path>& paths) {
    for (const auto& path : paths) add(key, path.string());
  }
  void within(std::string prefix) { prefix_ = std::move(prefix); }
  std::string take() { return std::move(text_); }

 private:
  std::string prefix_ = "features.";
  std::string text_;
};

void add_style(const StyleSettings& style, Lines& lines) {
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

void add_sound(const RecipeSettings& settings, Lines& lines) {
  lines.add("sample_rate", settings.sample_rate);
  lines.add("resampler", settings.resampler == ResamplerKind::soxr ? "soxr" : "sinc");
  std::vector<std::uint32_t> thousandths;
  for (const Speed speed : settings.speeds) thousandths.push_back(speed.thousandths);
  if (!thousandths.empty()) lines.add("speeds", fmt::format("{}", fmt::join(thousandths, ",")));
  if (settings.dither > 0) lines.add("dither", settings.dither);
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

void add_spec_augment(const SpecAugmentOptions& options, Lines& lines) {
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

void add_frames(const RecipeSettings& settings, Lines& lines) {
  if (settings.cmvn) {
    const CmvnSettings& cmvn = settings.normalise;
    lines.add("cmvn", static_cast<int>(cmvn.options.kind));
    lines.add("cmvn_variance", cmvn.options.variance);
    if (cmvn.options.kind == CmvnKind::sliding) lines.add("cmvn_window", cmvn.options.window);
    if (!cmvn.speaker.empty()) lines.add("cmvn_speaker", cmvn.speaker);
  }
  if (settings.spec_augment) add_spec_augment(settings.masks, lines);
  if (settings.deltas.order > 0) {
    lines.add("deltas", settings.deltas.order);
    lines.add("delta_window", settings.deltas.window);
    lines.add("delta_edges", settings.deltas.edges == DeltaEdges::htk ? "htk" : "kaldi");
  }
  if (settings.splice != Splicing{}) {
    lines.add("splice", fmt::format("[{}, {}]", settings.splice.left, settings.splice.right));
  }
  if (settings.stacking != Stacking{}) {
    const Stacking& stacking = settings.stacking;
    lines.add("stack", stacking.stack);
    lines.add("stride", stacking.stride);
    lines.add("stack_align", static_cast<int>(stacking.align));
    lines.add("stack_end", static_cast<int>(stacking.end));
    lines.add("target_offset", stacking.target_offset);
  }
  if (settings.keep.of > 1) {
    lines.add("keep_one_of", settings.keep.of);
    lines.add("keep_offset",
              settings.keep_random ? std::string("random") : std::to_string(settings.keep.offset));
  }
  if (settings.delay.frames > 0) {
    lines.add("label_delay", settings.delay.frames);
    lines.add("label_extend", settings.delay.extend);
    lines.add("ignore_value", settings.ignore_value);
  }
  lines.add("label_slack", settings.label_slack);
}

/// The first of some checks that fails, as a fault of the configuration.
Result<void> first_fault(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& each : checks) {
    if (!each) return bad_recipe(each.error().message);
  }
  return {};
}

Result<void> check_style(const StyleSettings& style) {
  if (!(style.weight >= 0 && std::isfinite(style.weight))) {
    return bad_recipe(fmt::format("weight {} of a style; allowed: 0 and up, finite", style.weight));
  }
  return first_fault({check(style.noise_draw), check(style.reverberation), check(style.gain),
                      check(style.telephone)});
}

Result<void> check_styles(const std::vector<StyleSettings>& styles) {
  double sum = 0;
  for (const StyleSettings& style : styles) {
    if (auto sound = check_style(style); !sound) return sound;
    sum += style.weight;
  }
  if (styles.empty() || sum > 0) return {};
  return bad_recipe(fmt::format("weight 0 of {}; allowed: one style with a weight above 0",
                                styles.size() == 1 ? "the only style" : "every style"));
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

Result<void> check_cmvn(const CmvnSettings& cmvn) {
  const CmvnKind kind = cmvn.options.kind;
  const bool stored = kind == CmvnKind::global || kind == CmvnKind::speaker;
  if (stored == cmvn.statistics.empty()) {
    return bad_recipe(stored ? "cmvn global or speaker without cmvn_statistics; allowed: the file "
                               "that `batchwright cmvn` wrote"
                             : "cmvn_statistics with cmvn utterance or sliding; allowed: with "
                               "global and speaker");
  }
  if ((kind == CmvnKind::speaker) == cmvn.speaker.empty()) {
    return bad_recipe(
        "cmvn_speaker names the field of cmvn = \"speaker\"; allowed: both, or "
        "neither");
  }
  return first_fault({check(cmvn.options)});
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
  if (auto sound = check_styles(settings.styles); !sound) return sound;
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
  if (settings.cmvn) {
    if (auto sound = check_cmvn(settings.normalise); !sound) return sound;
  }
  if (settings.spec_augment) {
    if (auto sound = first_fault({check(settings.masks)}); !sound) return sound;
  }
  return first_fault({check_dither(settings.dither), check(settings.deltas), check(settings.splice),
                      check(settings.stacking), check(settings.keep), check(settings.delay)});
}

bool asks_anything(const RecipeSettings& settings) {
  RecipeSettings none;
  none.draws = settings.draws;
  none.max_seconds = settings.max_seconds;
  return settings != none;
}

bool draws_anything(const RecipeSettings& settings) {
  return !settings.styles.empty() || settings.speeds.size() > 1 || settings.dither > 0 ||
         settings.spec_augment || settings.keep_random;
}

std::string recipe_text(const RecipeSettings& settings) {
  if (!asks_anything(settings)) return {};
  Lines lines;
  add_sound(settings, lines);
  add_frames(settings, lines);
  for (std::size_t k = 0; k < settings.styles.size(); ++k) {
    lines.within(fmt::format("features.style{}.", k));
    add_style(settings.styles[k], lines);
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
