#include "storage/features/frontend/frames/stacking.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {
namespace {

constexpr std::uint32_t kMostBeside = 1024;

/// Frames side by side from place `first` on, which may lie before the frames: there the first is
/// repeated. Behind them lie zeros, or the last.
struct SideBySide {
  std::span<const float> frames;
  std::size_t dimensions = 1;
  bool zeros_behind = false;

  void copy(std::int64_t first, std::uint32_t count, float* out) const {
    const auto last = static_cast<std::int64_t>(frames.size() / dimensions) - 1;
    for (std::int64_t t = first; t < first + count; ++t, out += dimensions) {
      if (t > last && zeros_behind) {
        std::fill_n(out, dimensions, 0.0F);
        continue;
      }
      const auto from = static_cast<std::size_t>(std::clamp(t, std::int64_t{0}, last));
      std::copy_n(frames.data() + from * dimensions, dimensions, out);
    }
  }
};

}  // namespace

Result<void> check(const Splicing& splicing) {
  for (const std::uint32_t side : {splicing.left, splicing.right}) {
    if (side <= kMostBeside) continue;
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("splice of {} frames to the left and {} to the right; allowed: 0 to {}",
                    splicing.left, splicing.right, kMostBeside)};
  }
  return {};
}

void splice_frames(const Splicing& splicing, std::size_t dimensions, std::span<const float> frames,
                   std::span<float> out) {
  const SideBySide side{frames, dimensions, false};
  const std::uint32_t count = splicing.left + 1 + splicing.right;
  const auto frame_count = static_cast<std::int64_t>(frames.size() / dimensions);
  float* to = out.data();
  for (std::int64_t t = 0; t < frame_count; ++t, to += count * dimensions) {
    side.copy(t - splicing.left, count, to);
  }
}

void stack_frames(const Stacking& stacking, std::size_t dimensions, std::span<const float> frames,
                  std::span<float> out) {
  const SideBySide side{frames, dimensions, stacking.end == StackEnd::zeros};
  const std::uint64_t count = stacked_length(frames.size() / dimensions, stacking);
  const std::int64_t before = frames_before(stacking);
  float* to = out.data();
  for (std::uint64_t t = 0; t < count; ++t, to += stacking.stack * dimensions) {
    side.copy(static_cast<std::int64_t>(t * stacking.stride) - before, stacking.stack, to);
  }
}

void keep_frames(const KeepOne& keep, std::size_t dimensions, std::span<const float> frames,
                 std::span<float> out) {
  const std::uint64_t count = kept_length(frames.size() / dimensions, keep);
  for (std::uint64_t t = 0; t < count; ++t) {
    std::copy_n(frames.data() + (keep.offset + t * keep.of) * dimensions, dimensions,
                out.data() + t * dimensions);
  }
}

void extend_frames(std::uint64_t count, std::size_t dimensions, std::span<float> frames) {
  if (count == 0) return;
  const float* const last = frames.data() + (count - 1) * dimensions;
  for (std::size_t i = count * dimensions; i + dimensions <= frames.size(); i += dimensions) {
    std::copy_n(last, dimensions, frames.data() + i);
  }
}

}  // namespace batchwright
