#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/recipe/opened_recipe.h"

namespace batchwright {

/// The groups of steps whose time is taken.
enum class RecipeStep : std::uint8_t {
  decode,
  resample,
  reverberation,
  noise,  ///< With gain and dither.
  telephone,
  features,
  frames,  ///< All that comes behind the features.
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

/// A field of a row that was made.
struct MadeField {
  std::vector<std::byte> bytes;
  std::uint32_t length = 0;
};

/// Makes rows by a recipe, with memory that is used again: it grows to the longest row.
/// Threads: one at a time.
class RowMaker {
 public:
  /// `key`: of Recipe::draw_keys(). `values` are those of the stored fields, which may lie in a
  /// map. `row` becomes as long as the recipe's fields; those that are not made stay as they are.
  /// Errors: corrupt_record, naming what is wrong; store_unavailable; not_found (a speaker without
  /// statistics).
  Result<void> make(const Recipe& recipe, const DrawKey& key, std::span<const FieldValue> values,
                    std::vector<MadeField>& row);

  /// Of the last row.
  const RowDraws& draws() const { return draws_; }
  /// Sound as the front end heard it; empty where there was none.
  std::span<const float> sound() const { return sound_; }
  /// Sound as it was stored.
  std::span<const float> stored_sound() const { return stored_; }

  /// Seconds that each step took since the last call.
  std::array<double, kRecipeSteps> take_seconds();

 private:
  Result<void> make_sound(const Recipe& recipe, const DrawKey& key,
                          std::span<const FieldValue> values, const RowLengths& lengths);
  Result<void> apply_style(const Recipe& recipe, const DrawKey& key);
  Result<void> add_noise_of(const SoundSet& set, const NoiseOptions& options, const DrawKey& key);
  Result<void> make_frames(const Recipe& recipe, const DrawKey& key,
                           std::span<const FieldValue> values, const RowLengths& lengths);
  Result<void> normalise(const Recipe& recipe, std::span<const FieldValue> values);
  void put_primary(const Recipe& recipe, MadeField& out);
  void put_drawn(DrawnField drawn, MadeField& out) const;
  Result<void> put_aligned(const Recipe& recipe, std::size_t field, const FieldValue& value,
                           const RowLengths& lengths, MadeField& out);
  void step_done(RecipeStep step);

  /// Memory of the steps before the features.
  struct SoundScratch {
    std::vector<std::byte> bytes;
    std::vector<float> noise;
    Resampler soxr{ResamplerKind::soxr};
    Resampler sinc{ResamplerKind::sinc};
    Reverberation reverberation;
    TelephoneScratch telephone;
    SoundSet::Scratch sets;
  };
  /// And of those behind them.
  struct FrameScratch {
    std::vector<float> other;
    CmvnScratch cmvn;
    DeltaScratch deltas;
    std::vector<float> warp;
    std::vector<std::byte> values;
  };

  SoundScratch sound_scratch_;
  FrameScratch frame_scratch_;
  std::vector<float> stored_;
  std::vector<float> sound_;
  std::vector<float> frames_;
  std::size_t dimensions_ = 1;  // of frames_
  RowDraws draws_;
  std::array<double, kRecipeSteps> seconds_{};
  double begun_ = 0;
};

}  // namespace batchwright
