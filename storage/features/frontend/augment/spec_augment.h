#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/features/frontend/augment/draws.h"

namespace batchwright {

/// SpecAugment (Park et al. 2019), and its adaptive masks (Park et al. 2020). Widths include their
/// limits, as in the papers.
struct SpecAugmentOptions {
  double probability = 1;
  std::uint32_t time_warp = 0;  ///< w in frames; 0: off.
  std::uint32_t time_masks = 2;
  std::uint32_t time_width = 100;  ///< Most frames of a mask ...
  double time_share = 1;           ///< ... and its most of all frames.
  /// Shares p_M and p_S of the frames: min(20, p_M T) masks of at most p_S T frames, in place of
  /// time_masks, time_width and time_share. Both, or neither.
  std::optional<double> adaptive_masks;
  std::optional<double> adaptive_width;
  std::uint32_t freq_masks = 2;
  std::uint32_t freq_width = 27;  ///< Most bands of a mask.
  bool mean = false;              ///< Masked values become the mean of all, or mask_value.
  double mask_value = 0;
  friend bool operator==(const SpecAugmentOptions&, const SpecAugmentOptions&) = default;
};

/// Errors: invalid_argument, naming the setting, what was found and what is allowed.
Result<void> check(const SpecAugmentOptions& options);

/// Frames or bands [start, start + width).
struct Mask {
  std::uint32_t start = 0;
  std::uint32_t width = 0;
  friend bool operator==(const Mask&, const Mask&) = default;
};

/// The frames before `centre` are stretched, or squeezed, to `moved_to` frames.
struct TimeWarp {
  std::uint32_t centre = 0;
  std::uint32_t moved_to = 0;
  friend bool operator==(const TimeWarp&, const TimeWarp&) = default;
};

/// What was drawn for one row; `applies` is false where chance left the row as it is.
struct SpecAugmentDraw {
  bool applies = false;
  std::optional<TimeWarp> warp;
  std::vector<Mask> time;
  std::vector<Mask> bands;
};

/// The draws for features [frames, bands], both below 2^31. `draw` is overwritten, its memory is
/// used again.
void draw_spec_augment(const DrawKey& key, const SpecAugmentOptions& options, std::uint32_t frames,
                       std::uint32_t bands, SpecAugmentDraw& draw);

/// Warps and masks `values` [frames, bands] in place; `draw` is for as many of each. `scratch`
/// grows to the values' size where time is warped.
void apply_spec_augment(const SpecAugmentDraw& draw, const SpecAugmentOptions& options,
                        std::uint32_t bands, std::span<float> values, std::vector<float>& scratch);

}  // namespace batchwright
