#include "storage/features/frontend/augment/spec_augment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace batchwright {
namespace {

constexpr std::uint32_t kMostMasks = 1000;
constexpr std::uint32_t kMostAdaptiveMasks = 20;
constexpr std::uint32_t kMostWarp = 1U << 20;

Error bad_spec_augment(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

Result<void> check_share(const char* name, double found) {
  if (found >= 0 && found <= 1) return {};  // written so that NaN fails
  return bad_spec_augment(fmt::format("spec_augment {} {}; allowed: 0 to 1", name, found));
}

Result<void> check_most(const char* name, std::uint32_t found, std::uint32_t most) {
  if (found <= most) return {};
  return bad_spec_augment(fmt::format("spec_augment {} {}; allowed: 0 to {}", name, found, most));
}

Result<void> check_adaptive(const SpecAugmentOptions& options) {
  if (options.adaptive_masks.has_value() != options.adaptive_width.has_value()) {
    const bool masks = options.adaptive_masks.has_value();
    return bad_spec_augment(fmt::format("spec_augment {} without {}; allowed: both or neither",
                                        masks ? "adaptive_masks" : "adaptive_width",
                                        masks ? "adaptive_width" : "adaptive_masks"));
  }
  if (!options.adaptive_masks) return {};
  const SpecAugmentOptions plain;
  if (options.time_masks != plain.time_masks || options.time_width != plain.time_width ||
      options.time_share != plain.time_share) {
    return bad_spec_augment(
        "spec_augment adaptive_masks with time_masks, time_width or time_share, whose place it "
        "takes; allowed: one of the two");
  }
  if (auto bad = check_share("adaptive_masks", *options.adaptive_masks); !bad) return bad;
  return check_share("adaptive_width", *options.adaptive_width);
}

std::uint32_t share_of(double share, std::uint32_t count) {
  return static_cast<std::uint32_t>(std::floor(share * static_cast<double>(count)));
}

/// Masks of at most `limit` of `size` places.
void draw_masks(Draws& draws, std::uint32_t count, std::uint32_t limit, std::uint32_t size,
                std::vector<Mask>& masks) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t width = draws.below(std::uint64_t{limit} + 1);
    masks.push_back({draws.below(std::uint64_t{size} - width + 1), width});
  }
}

void draw_time_masks(const DrawKey& key, const SpecAugmentOptions& options, std::uint32_t frames,
                     std::vector<Mask>& masks) {
  Draws draws(key, DrawStage::time_masks);
  if (options.adaptive_masks) {
    const std::uint32_t count =
        std::min(kMostAdaptiveMasks, share_of(*options.adaptive_masks, frames));
    return draw_masks(draws, count, share_of(*options.adaptive_width, frames), frames, masks);
  }
  const std::uint32_t limit = std::min(options.time_width, share_of(options.time_share, frames));
  draw_masks(draws, options.time_masks, limit, frames, masks);
}

std::optional<TimeWarp> draw_warp(const DrawKey& key, std::uint32_t w, std::uint32_t frames) {
  if (w == 0 || frames <= 2 * w + 1) return std::nullopt;
  Draws draws(key, DrawStage::time_warp);
  const std::uint32_t centre = w + 1 + draws.below(frames - 2 * w - 1);
  return TimeWarp{centre, centre - w + draws.below(2 * w + 1)};
}

/// Stretches frames [n, bands] to as many as `out` has: each is read between its two neighbours.
void stretch(std::span<const float> from, std::size_t bands, std::span<float> out) {
  const auto k = static_cast<double>(from.size() / bands);
  const std::size_t frames = out.size() / bands;
  for (std::size_t i = 0; i < frames; ++i) {
    const double exact = (static_cast<double>(i) + 0.5) * k / static_cast<double>(frames) - 0.5;
    const double place = std::clamp(exact, 0.0, k - 1);
    const auto left = static_cast<std::size_t>(place);
    const double share = place - static_cast<double>(left);
    const float* const a = from.data() + left * bands;
    const float* const b = share > 0 ? a + bands : a;
    for (std::size_t d = 0; d < bands; ++d) {
      out[i * bands + d] = static_cast<float>((1 - share) * static_cast<double>(a[d]) +
                                              share * static_cast<double>(b[d]));
    }
  }
}

void warp_time(const TimeWarp& warp, std::size_t bands, std::span<float> values,
               std::vector<float>& scratch) {
  scratch.assign(values.begin(), values.end());
  const std::span<const float> before(scratch);
  const std::size_t centre = warp.centre * bands;
  const std::size_t moved_to = warp.moved_to * bands;
  stretch(before.first(centre), bands, values.first(moved_to));
  stretch(before.subspan(centre), bands, values.subspan(moved_to));
}

float mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

}  // namespace

Result<void> check(const SpecAugmentOptions& options) {
  if (auto bad = check_share("probability", options.probability); !bad) return bad;
  if (auto bad = check_share("time_share", options.time_share); !bad) return bad;
  if (auto bad = check_most("time_warp", options.time_warp, kMostWarp); !bad) return bad;
  if (auto bad = check_most("time_masks", options.time_masks, kMostMasks); !bad) return bad;
  if (auto bad = check_most("freq_masks", options.freq_masks, kMostMasks); !bad) return bad;
  if (auto bad = check_adaptive(options); !bad) return bad;
  if (!std::isfinite(options.mask_value)) {
    return bad_spec_augment(
        fmt::format("spec_augment mask_value {}; allowed: finite numbers", options.mask_value));
  }
  if (options.mean && options.mask_value != 0) {
    return bad_spec_augment(fmt::format(
        "spec_augment mask_value {} with mean; allowed: one of the two", options.mask_value));
  }
  return {};
}

void draw_spec_augment(const DrawKey& key, const SpecAugmentOptions& options, std::uint32_t frames,
                       std::uint32_t bands, SpecAugmentDraw& draw) {
  draw.time.clear();
  draw.bands.clear();
  draw.warp.reset();
  draw.applies = frames > 0 && Draws(key, DrawStage::spec_augment).chance(options.probability);
  if (!draw.applies) return;
  draw.warp = draw_warp(key, options.time_warp, frames);
  draw_time_masks(key, options, frames, draw.time);
  Draws draws(key, DrawStage::frequency_masks);
  draw_masks(draws, options.freq_masks, std::min(options.freq_width, bands), bands, draw.bands);
}

void apply_spec_augment(const SpecAugmentDraw& draw, const SpecAugmentOptions& options,
                        std::uint32_t bands, std::span<float> values, std::vector<float>& scratch) {
  if (!draw.applies) return;
  if (draw.warp) warp_time(*draw.warp, bands, values, scratch);
  const float masked = options.mean ? mean_of(values) : static_cast<float>(options.mask_value);
  for (const Mask& mask : draw.time) {
    std::fill_n(values.data() + std::size_t{mask.start} * bands, std::size_t{mask.width} * bands,
                masked);
  }
  for (const Mask& mask : draw.bands) {
    for (std::size_t i = mask.start; i < values.size(); i += bands) {
      std::fill_n(values.data() + i, mask.width, masked);
    }
  }
}

}  // namespace batchwright
