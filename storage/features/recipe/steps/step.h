#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/features/recipe/sources/sound_set.h"
#include "storage/features/recipe/sources/speakers.h"
#include "storage/features/recipe/sources/statistics.h"
#include "storage/features/recipe/steps/settings.h"

namespace batchwright {

/// The groups of steps whose time is taken.
enum class RecipeStep : std::uint8_t {
  decode,
  resample,
  reverberation,
  noise,  ///< With the other steps on sound that have no name here.
  telephone,
  features,
  frames,  ///< All steps after the features.
  count
};
inline constexpr std::size_t kRecipeSteps = static_cast<std::size_t>(RecipeStep::count);

/// What was drawn for a row, and what came of it.
struct RowDraws {
  std::size_t style = 0;
  Speed speed;
  RateRatio ratio;  ///< What resampling did, speed included.
  RoomDraw room;
  NoiseDraw noise;
  std::uint64_t noise_offset = 0;
  NoiseMix mix;  ///< Not added: sound or noise is silent.
  double gain_db = 0;
  TelephoneDraw telephone;
  SpecAugmentDraw masks;
  KeepOne keep;
  std::uint64_t saturated = 0;  ///< Samples that did not fit int16.
  double stored_seconds = 0;    ///< Of the sound as it is stored.
};

/// How long one row is after each group of steps.
struct RowLengths {
  Speed speed;
  RateRatio ratio;                ///< Of sound: what one resampling does.
  std::uint64_t samples = 0;      ///< Of sound, after it.
  std::uint64_t unperturbed = 0;  ///< Frames at speed 1.
  std::uint64_t frames = 0;       ///< Frames of the features.
  KeepOne keep;                   ///< With the offset that was drawn.
  std::uint64_t row = 0;          ///< Frames that the row has in the end.
};

/// What a recipe has open for its steps. Immutable once it is.
struct StepData {
  RecipeSettings settings;
  std::uint32_t rate = 0;        ///< Hz, of sound after resampling.
  double sample_scale = 1;       ///< What the front end multiplies samples by.
  std::uint32_t dimensions = 1;  ///< Of a frame of features, before any step on frames.

  /// Noise and rooms of a style; null where it has none.
  struct Sources {
    std::shared_ptr<const SoundSet> noise;
    std::shared_ptr<const SoundSet> rooms;
  };
  std::vector<Sources> sources;  ///< By style.
  std::vector<double> weights;   ///< Of the styles.

  /// Sums made before, if there are any; with those of speakers the stored field that tells them.
  std::optional<CmvnStatistics> statistics;
  SpeakerField speaker;
};

/// A row between two steps, and memory that the next row uses again.
/// Threads: one at a time.
struct RowInWork {
  std::vector<float> sound;
  std::vector<float> frames;   ///< [T, dimensions]
  std::size_t dimensions = 1;  ///< Of `frames`.
  RowDraws draws;

  /// What steps on sound use beside it.
  struct SoundScratch {
    std::vector<std::byte> bytes;
    std::vector<float> noise;
    Resampler soxr{ResamplerKind::soxr};
    Resampler sinc{ResamplerKind::sinc};
    Reverberation reverberation;
    TelephoneScratch telephone;
    SoundSet::Scratch sets;
  } sound_scratch;
  /// And steps on frames.
  struct FrameScratch {
    std::vector<float> other;
    CmvnScratch cmvn;
    DeltaScratch deltas;
    std::vector<float> warp;
    std::vector<std::byte> values;
  } frame_scratch;

  /// The time since the last call is that of `step`.
  void note_time(RecipeStep step);
  void start_time() { begun = std::chrono::steady_clock::now(); }
  std::array<double, kRecipeSteps> seconds{};
  std::chrono::steady_clock::time_point begun;
};

/// What a step is given beside the row.
struct StepInput {
  const StepData& data;
  const DrawKey& key;
  std::span<const FieldValue> values;  ///< The stored ones, which may lie in a map.
  const RowLengths& lengths;
};

/// Lines of `key = value`, as fingerprints have them.
class RecipeLines {
 public:
  template <class Value>
  void add(std::string_view key, const Value& value) {
    add_text(key, fmt::format("{}", value));
  }
  void add_paths(std::string_view key, const std::vector<std::filesystem::path>& paths);
  /// What all keys of the next lines begin with.
  void within(std::string prefix) { prefix_ = std::move(prefix); }
  std::string take() { return std::move(text_); }

 private:
  void add_text(std::string_view key, std::string_view value);

  std::string prefix_ = "features.";
  std::string text_;
};

/// All that the room knows of a step which a recipe may ask for. A null function stands for a step
/// that does nothing of the kind. Its keys are rows in daemon/config/features_keys.cpp.
struct RowStep {
  enum class On : std::uint8_t { sound, frames };

  On on = On::sound;
  RecipeStep timed = RecipeStep::noise;
  bool (*is_asked)(const RecipeSettings&) = nullptr;
  /// Whether what it does differs from row to row by chance.
  bool (*draws)(const RecipeSettings&) = nullptr;
  /// Is also asked where the step is off. Errors: any code; the message names the setting.
  Result<void> (*check)(const RecipeSettings&) = nullptr;
  /// Only where the step is asked for: a text without the step stays as it was before there was
  /// one.
  void (*describe)(const RecipeSettings&, RecipeLines&) = nullptr;
  /// Frames of a row after the step, of so many before it; with the offset that was drawn.
  std::uint64_t (*length)(std::uint64_t frames, const RecipeSettings&,
                          const KeepOne& keep) = nullptr;
  /// The values of a frame after the step are so many times those before it.
  std::uint64_t (*values)(const RecipeSettings&) = nullptr;
  /// Errors: those of RowMaker::make().
  Result<void> (*apply)(const StepInput&, RowInWork&) = nullptr;
};

/// Lines of one style, of which a text has those of all at its end.
void describe_style(const StyleSettings& style, RecipeLines& lines);

/// In the order in which they are done. A new one has its file in this folder, and its line in
/// steps.cpp.
std::span<const RowStep* const> recipe_steps();

extern const RowStep kDcOffsetStep, kStyleStep, kDitherStep;
extern const RowStep kCmvnStep, kSpecAugmentStep, kDeltasStep, kSpliceStep, kKeepOneOfStep,
    kStackStep, kLabelDelayStep;

}  // namespace batchwright
