#include "daemon/assembly/tensor_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "daemon/assembly/copying/run_copy.h"

// Batch-major, a row is one run of bytes and one of padding. Time-major, neighbours in the slot are
// the rows' frames of one time, which come from as many places in the map: frames of whole cache
// lines are runs of their own; others are put together in a tile, which the nearest cache holds,
// and the tile is one run. Each run is written in the way that this machine is fastest in
// (copying/).

namespace batchwright {
namespace {

using Source = std::span<const std::byte>;

/// What is asked for of the row that comes next: its first lines are on pages of which nothing is
/// in a cache yet, and no hardware foresees them.
constexpr std::size_t kAheadBytes = 8 * kCacheLine;

void ask_for(Source next) {
  for (std::size_t at = 0; at < std::min(next.size(), kAheadBytes); at += kCacheLine) {
    __builtin_prefetch(next.data() + at);
  }
}

void fill_batch_major(const TensorGrid& grid, std::span<const Source> sources,
                      const CopyChoice& copies) {
  const std::size_t row_bytes = grid.frames * grid.frame_bytes;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const std::span to = grid.payload.subspan(row * row_bytes, row_bytes);
    const Source source = sources[row];
    if (row + 1 < grid.rows) ask_for(sources[row + 1]);
    copy_run(copies.for_run(source.size()), to.data(), source);
    const std::span rest = to.subspan(source.size());
    fill_run(copies.for_run(rest.size()), rest, grid.padding);
  }
}

/// Frames of whole lines, each of which is a run.
void fill_frames(const TensorGrid& grid, std::span<const Source> sources,
                 const CopyChoice& copies) {
  // All frames of a tensor are written alike, whatever their length: next to each other they are a
  // long run.
  const CopyWay& way = copies.for_run(grid.payload.size());
  const std::size_t stride = grid.rows * grid.frame_bytes;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    std::byte* to = grid.payload.data() + row * grid.frame_bytes;
    const Source source = sources[row];
    for (std::size_t at = 0; at < source.size(); at += grid.frame_bytes, to += stride) {
      copy_run(way, to, source.subspan(at, grid.frame_bytes));
    }
    for (std::size_t t = source.size() / grid.frame_bytes; t < grid.frames; ++t, to += stride) {
      fill_run(way, {to, grid.frame_bytes}, grid.padding);
    }
  }
}

/// Half of the nearest cache, whose other half is for the sources.
constexpr std::size_t kTileBytes = 16 * 1024;

/// A part of a time-major tensor without a gap: all rows of some frames, or some rows of one.
struct Tile {
  std::size_t first_frame;
  std::size_t frames;
  std::size_t first_row;
  std::size_t rows;
};

template <std::size_t kBytes>
void scatter(std::byte* to, std::size_t stride, Source from) {
  for (std::size_t at = 0; at < from.size(); at += kBytes, to += stride) {
    std::memcpy(to, from.data() + at, kBytes);
  }
}

/// Frames of few bytes get a loop in which the compiler knows their size.
void scatter(std::byte* to, std::size_t stride, Source from, std::size_t frame_bytes) {
  switch (frame_bytes) {
    case 1: return scatter<1>(to, stride, from);
    case 2: return scatter<2>(to, stride, from);
    case 4: return scatter<4>(to, stride, from);
    case 8: return scatter<8>(to, stride, from);
    default: break;
  }
  for (std::size_t at = 0; at < from.size(); at += frame_bytes, to += stride) {
    std::memcpy(to, from.data() + at, frame_bytes);
  }
}

void put_together(const TensorGrid& grid, std::span<const Source> sources, const Tile& tile,
                  std::byte* to) {
  const std::size_t stride = tile.rows * grid.frame_bytes;
  for (std::size_t r = 0; r < tile.rows; ++r) {
    const Source source = sources[tile.first_row + r];
    const std::size_t begin = std::min(source.size(), tile.first_frame * grid.frame_bytes);
    const Source part =
        source.subspan(begin, std::min(source.size() - begin, tile.frames * grid.frame_bytes));
    std::byte* const lane = to + r * grid.frame_bytes;
    scatter(lane, stride, part, grid.frame_bytes);
    for (std::size_t t = part.size() / grid.frame_bytes; t < tile.frames; ++t) {
      fill_run(plain_copy(), {lane + t * stride, grid.frame_bytes}, grid.padding);
    }
  }
}

void fill_tiles(const TensorGrid& grid, std::span<const Source> sources, const CopyChoice& copies) {
  alignas(kCacheLine) std::array<std::byte, kTileBytes> memory;
  const CopyWay& way = copies.for_run(grid.payload.size());
  const std::size_t rows = std::min(grid.rows, kTileBytes / grid.frame_bytes);
  const std::size_t frames =
      rows < grid.rows ? 1 : std::max<std::size_t>(1, kTileBytes / (rows * grid.frame_bytes));
  std::byte* to = grid.payload.data();
  for (std::size_t t = 0; t < grid.frames; t += frames) {
    for (std::size_t r = 0; r < grid.rows; r += rows) {
      const Tile tile{t, std::min(frames, grid.frames - t), r, std::min(rows, grid.rows - r)};
      put_together(grid, sources, tile, memory.data());
      const std::size_t bytes = tile.frames * tile.rows * grid.frame_bytes;
      copy_run(way, to, {memory.data(), bytes});
      to += bytes;
    }
  }
}

void fill_time_major(const TensorGrid& grid, std::span<const Source> sources,
                     const CopyChoice& copies) {
  const bool whole_lines = grid.frame_bytes % kCacheLine == 0;
  if (whole_lines || grid.frame_bytes > kTileBytes) return fill_frames(grid, sources, copies);
  fill_tiles(grid, sources, copies);
}

}  // namespace

void fill_tensor(const TensorGrid& grid, std::span<const Source> sources,
                 const CopyChoice& copies) {
  const auto too_long = [&](Source source) {
    return source.size() > grid.frames * grid.frame_bytes;
  };
  // A row that passes its place would overwrite the next one.
  if (sources.size() != grid.rows || std::any_of(sources.begin(), sources.end(), too_long)) {
    std::abort();
  }
  if (grid.layout == Layout::time_major) {
    fill_time_major(grid, sources, copies);
  } else {
    fill_batch_major(grid, sources, copies);
  }
  finish_streams();
}

}  // namespace batchwright
