#include "daemon/assembly/tensor_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

// Batch-major, a row is one run of bytes: one copy and one fill. Time-major, the frames of a row
// lie rows * frame_bytes apart. Row after row would then touch every page of the tensor once a
// row, so the tensor is written in tiles of some frames of all rows that stay in the cache.

namespace batchwright {
namespace {

using Source = std::span<const std::byte>;

/// A tile fits the second-level cache beside what is read for it.
constexpr std::size_t kTileBytes = std::size_t{256} << 10;

/// Frames of one row within a tile, `stride` bytes apart.
struct Lane {
  std::byte* first;
  std::size_t stride;
  std::size_t frame_bytes;
};

template <std::size_t kBytes>
void scatter_narrow(const Lane& lane, const std::byte* from, std::size_t frames) {
  for (std::size_t i = 0; i < frames; ++i) {
    std::memcpy(lane.first + i * lane.stride, from + i * kBytes, kBytes);
  }
}

/// Frames of few bytes get a loop in which the compiler knows their size.
void scatter(const Lane& lane, const std::byte* from, std::size_t frames) {
  switch (lane.frame_bytes) {
    case 1: return scatter_narrow<1>(lane, from, frames);
    case 2: return scatter_narrow<2>(lane, from, frames);
    case 4: return scatter_narrow<4>(lane, from, frames);
    case 8: return scatter_narrow<8>(lane, from, frames);
    default: break;
  }
  for (std::size_t i = 0; i < frames; ++i) {
    std::memcpy(lane.first + i * lane.stride, from + i * lane.frame_bytes, lane.frame_bytes);
  }
}

/// Frames [begin, end) of row `row`.
void fill_lane(const TensorGrid& grid, std::size_t row, Source source, std::size_t begin,
               std::size_t end) {
  const std::size_t stride = grid.rows * grid.frame_bytes;
  Lane lane{grid.payload.data() + begin * stride + row * grid.frame_bytes, stride,
            grid.frame_bytes};
  const std::size_t real = std::clamp(source.size() / grid.frame_bytes, begin, end);
  if (real != begin) {
    scatter(lane, source.data() + begin * grid.frame_bytes, real - begin);
    lane.first += (real - begin) * stride;
  }
  for (std::size_t t = real; t < end; ++t, lane.first += stride) {
    fill({lane.first, grid.frame_bytes}, grid.padding);
  }
}

void fill_time_major(const TensorGrid& grid, std::span<const Source> sources) {
  const std::size_t stride = std::max<std::size_t>(grid.rows * grid.frame_bytes, 1);
  const std::size_t tile = std::max<std::size_t>(kTileBytes / stride, 1);
  for (std::size_t begin = 0; begin < grid.frames; begin += tile) {
    const std::size_t end = std::min(begin + tile, grid.frames);
    for (std::size_t row = 0; row < grid.rows; ++row) {
      fill_lane(grid, row, sources[row], begin, end);
    }
  }
}

void fill_batch_major(const TensorGrid& grid, std::span<const Source> sources) {
  const std::size_t row_bytes = grid.frames * grid.frame_bytes;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const std::span to = grid.payload.subspan(row * row_bytes, row_bytes);
    const Source source = sources[row];
    if (!source.empty()) std::memcpy(to.data(), source.data(), source.size());
    fill(to.subspan(source.size()), grid.padding);
  }
}

}  // namespace

void fill_tensor(const TensorGrid& grid, std::span<const Source> sources) {
  const auto too_long = [&](Source source) {
    return source.size() > grid.frames * grid.frame_bytes;
  };
  // A row that passes its place would overwrite the next one.
  if (sources.size() != grid.rows || std::any_of(sources.begin(), sources.end(), too_long)) {
    std::abort();
  }
  if (grid.layout == Layout::time_major) {
    fill_time_major(grid, sources);
  } else {
    fill_batch_major(grid, sources);
  }
}

}  // namespace batchwright
