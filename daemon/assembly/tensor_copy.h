#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/assembly/copying/copy_choice.h"
#include "daemon/assembly/padding.h"
#include "formats/formats.h"

namespace batchwright {

/// A tensor's payload as a grid of rows and frames.
struct TensorGrid {
  std::span<std::byte> payload;  ///< rows * frames * frame_bytes, in the slot.
  std::size_t rows = 0;
  std::size_t frames = 0;  ///< Frames of a row, padding included.
  std::size_t frame_bytes = 0;
  Layout layout = Layout::batch_major;
  Padding padding;
  /// Sources are float32, and cast to this: float16 or bfloat16. none: they are copied.
  DType cast = DType::none;
};

/// Finite values that a cast made infinite.
struct CastOverflows {
  std::uint64_t values = 0;
  std::size_t row = 0;  ///< A row that has some.
};

/// Copies or casts sources[r], whole frames, to row r, and fills what is left of the row with
/// padding. Every byte of the payload is written once. It owns nothing while it reads, so that it
/// may be left by a fault of the map that the sources lie in. What it wrote is visible to other
/// threads before anything it writes later.
CastOverflows fill_tensor(const TensorGrid& grid,
                          std::span<const std::span<const std::byte>> sources,
                          const CopyChoice& copies);

}  // namespace batchwright
