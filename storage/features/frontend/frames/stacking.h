#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/features/frontend/lengths.h"

namespace batchwright {

// Frames side by side, and frames left out. Arrays are [T, dimensions], row-major; `out` is other
// memory than `frames`, with as many rows as lengths.h says. dimensions >= 1.

/// Frames beside each frame.
struct Splicing {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  friend bool operator==(const Splicing&, const Splicing&) = default;
};

/// Errors: invalid_argument: more than 1,024 frames on a side.
Result<void> check(const Splicing& splicing);

/// Frames t - left ... t + right side by side, the ends repeated: `out` is [T, dimensions * (left +
/// 1 + right)].
void splice_frames(const Splicing& splicing, std::size_t dimensions, std::span<const float> frames,
                   std::span<float> out);

/// `out` is [stacked_length(T), dimensions * stack].
void stack_frames(const Stacking& stacking, std::size_t dimensions, std::span<const float> frames,
                  std::span<float> out);

/// `out` is [kept_length(T), dimensions].
void keep_frames(const KeepOne& keep, std::size_t dimensions, std::span<const float> frames,
                 std::span<float> out);

/// The features of delayed targets: the last frame is repeated where targets are not to be lost.
/// `frames` have room for delayed_length() of the `count` that they hold.
void extend_frames(std::uint64_t count, std::size_t dimensions, std::span<float> frames);

}  // namespace batchwright
