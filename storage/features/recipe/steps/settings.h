#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/features/frontend/frontend.h"
#include "storage/features/sound/sound.h"

namespace batchwright {

/// What sound goes through where this style was drawn.
struct StyleSettings {
  double weight = 1;                         ///< Its share of the rows is weight / sum of weights.
  std::vector<std::filesystem::path> noise;  ///< Datasets of sound, one behind the other.
  NoiseOptions noise_draw;
  std::vector<std::filesystem::path> rooms;  ///< Datasets of impulse responses.
  ReverberationOptions reverberation;
  GainOptions gain;
  TelephoneOptions telephone;

  friend bool operator==(const StyleSettings&, const StyleSettings&) = default;
};

/// Mean and variance normalisation.
struct CmvnSettings {
  CmvnOptions options;
  std::filesystem::path statistics;  ///< Of global and speaker: what `batchwright cmvn` wrote.
  std::string speaker;               ///< The scalar field that tells speakers apart.

  friend bool operator==(const CmvnSettings&, const CmvnSettings&) = default;
};

/// What a batch can say of the draws of its rows, each a scalar field of that name.
enum class DrawnField : std::uint8_t {
  style,   ///< int32: its place among the styles, from 0.
  snr_db,  ///< float32; infinity where no noise was added.
  speed,   ///< float32: the factor.
  room,    ///< int32: its place among the style's rooms, from 0; -1 for none.
};
std::string_view drawn_name(DrawnField field);

/// What is done with each sequence on its way into a batch, in the order of the members. Each step
/// is off unless set. README.md has the order and what each step does to lengths.
struct RecipeSettings {
  // Sound: the dataset has some, as samples or encoded.
  std::vector<StyleSettings> styles;
  std::uint32_t sample_rate = 0;  ///< Hz; 0: the rate that all sequences have.
  ResamplerKind resampler = ResamplerKind::soxr;
  std::vector<Speed> speeds;       ///< One is drawn for each row; none: as stored.
  bool dc_offset_removed = false;  ///< The mean of a sequence's samples.
  double dither = 0;
  std::string like;  ///< The front end's convention; empty: rows are sound, or what is stored.
  FeatureKind features = FeatureKind::logmel;
  /// Options of the front end, set one after the other.
  std::vector<std::pair<std::string, std::string>> options;
  DType sound = DType::float32;    ///< Of rows that are sound: int16 or float32.
  std::string field = "features";  ///< What features are called in a batch.
  /// Independent fields with a value a frame, before any step makes fewer or more of them.
  std::vector<std::string> aligned;
  std::vector<DrawnField> drawn;  ///< What rows say of their draws.

  // Features, of sound or as stored.
  bool cmvn = false;  ///< Whether `normalise` is done.
  CmvnSettings normalise;
  bool spec_augment = false;  ///< Whether `masks` are.
  SpecAugmentOptions masks;
  DeltaOptions deltas{0, 2, DeltaEdges::htk};
  Splicing splice;
  Stacking stacking;
  KeepOne keep;
  bool keep_random = false;  ///< The offset is drawn for each row.
  LabelDelay delay;
  double ignore_value = -100;  ///< Of targets that the delay leaves without a value.
  std::uint32_t label_slack = kDefaultLabelSlack;
  /// The version of the random numbers, 1 or 2. README.md has both.
  std::uint32_t draws = 2;
  /// Seconds of one stored sound that is decoded or read as a whole. It decides no row.
  std::uint32_t max_seconds = 3600;

  friend bool operator==(const RecipeSettings&, const RecipeSettings&) = default;
};

/// Whether anything is to be done: the settings are not those that a feed has without any. The
/// version of the draws and bounds ask for nothing by themselves.
bool asks_anything(const RecipeSettings& settings);

/// Whether any step draws: styles, several speeds, dither, masks, or a random offset.
bool draws_anything(const RecipeSettings& settings);

/// Checks what can be seen without the data. Errors: bad_configuration, naming the setting, what
/// was found and what is allowed.
Result<void> check_recipe(const RecipeSettings& settings);

/// The settings as `key = value` a line, for fingerprints and comparisons: all that decides a row,
/// except for the contents of noise, rooms and statistics. Empty where there is no recipe.
std::string recipe_text(const RecipeSettings& settings);

}  // namespace batchwright
