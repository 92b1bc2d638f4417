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

/// What is asked for of the row that comes next.
constexpr std::size_t kAheadBytes = 8 * kCacheLine;

/// Writes what comes from the map, and remembers what did not fit.
class Writer {
 public:
  explicit Writer(DType cast) : cast_(cast) {}

  /// Bytes of the tensor that so many bytes of a source make.
  std::size_t written(std::size_t source_bytes) const {
    return cast_ == DType::none ? source_bytes : source_bytes / 2;
  }
  std::size_t read(std::size_t tensor_bytes) const {
    return cast_ == DType::none ? tensor_bytes : tensor_bytes * 2;
  }
  bool casts() const { return cast_ != DType::none; }

  void run(const CopyWay& way, std::size_t row, std::byte* to, Source from) {
    if (!casts()) return copy_run(way, to, from);
    const std::uint64_t lost = cast_run(way, cast_, to, from);
    if (lost == 0) return;
    overflows_.values += lost;
    overflows_.row = row;
  }

  const CastOverflows& overflows() const { return overflows_; }

 private:
  DType cast_;
  CastOverflows overflows_;
};

/// A tensor to be filled.
struct Filling {
  const TensorGrid& grid;
  std::span<const Source> sources;
  const CopyChoice& copies;
  Writer& writer;
};

void fill_batch_major(const Filling& filling) {
  const TensorGrid& grid = filling.grid;
  const std::size_t row_bytes = grid.frames * grid.frame_bytes;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const std::span to = grid.payload.subspan(row * row_bytes, row_bytes);
    const Source source = filling.sources[row];
    if (row + 1 < grid.rows) prefetch_lines(filling.sources[row + 1], kAheadBytes);
    const std::size_t real = filling.writer.written(source.size());
    filling.writer.run(filling.copies.for_run(real), row, to.data(), source);
    const std::span rest = to.subspan(real);
    fill_run(filling.copies.for_run(rest.size()), rest, grid.padding);
  }
}

/// Frames of whole lines, each of which is a run.
void fill_frames(const Filling& filling) {
  const TensorGrid& grid = filling.grid;
  // All frames of a tensor are written alike, whatever their length: next to each other they are a
  // long run.
  const CopyWay& way = filling.copies.for_run(grid.payload.size());
  const std::size_t stride = grid.rows * grid.frame_bytes;
  const std::size_t source_frame = filling.writer.read(grid.frame_bytes);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    std::byte* to = grid.payload.data() + row * grid.frame_bytes;
    const Source source = filling.sources[row];
    for (std::size_t at = 0; at < source.size(); at += source_frame, to += stride) {
      filling.writer.run(way, row, to, source.subspan(at, source_frame));
    }
    for (std::size_t t = source.size() / source_frame; t < grid.frames; ++t, to += stride) {
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

class Tiles {
 public:
  explicit Tiles(const Filling& filling)
      : filling_(filling),
        rows_(std::min(filling.grid.rows, kTileBytes / filling.grid.frame_bytes)),
        frames_(rows_ < filling.grid.rows
                    ? 1
                    : std::max<std::size_t>(1, kTileBytes / (rows_ * filling.grid.frame_bytes))) {}

  void fill() {
    const TensorGrid& grid = filling_.grid;
    const CopyWay& way = filling_.copies.for_run(grid.payload.size());
    std::byte* to = grid.payload.data();
    for (std::size_t t = 0; t < grid.frames; t += frames_) {
      for (std::size_t r = 0; r < grid.rows; r += rows_) {
        const Tile tile{t, std::min(frames_, grid.frames - t), r, std::min(rows_, grid.rows - r)};
        put_together(tile);
        const std::size_t bytes = tile.frames * tile.rows * grid.frame_bytes;
        copy_run(way, to, {memory_.data(), bytes});
        to += bytes;
      }
    }
  }

 private:
  void put_together(const Tile& tile) {
    const TensorGrid& grid = filling_.grid;
    const std::size_t stride = tile.rows * grid.frame_bytes;
    for (std::size_t r = 0; r < tile.rows; ++r) {
      const Source part = part_of(tile, tile.first_row + r);
      std::byte* const lane = memory_.data() + r * grid.frame_bytes;
      scatter(lane, stride, part, grid.frame_bytes);
      for (std::size_t t = part.size() / grid.frame_bytes; t < tile.frames; ++t) {
        fill_run(plain_copy(), {lane + t * stride, grid.frame_bytes}, grid.padding);
      }
    }
  }

  /// The real frames of a row that belong to a tile, as they are in the tensor.
  Source part_of(const Tile& tile, std::size_t row) {
    const Source source = filling_.sources[row];
    const std::size_t frame = filling_.writer.read(filling_.grid.frame_bytes);
    const std::size_t begin = std::min(source.size(), tile.first_frame * frame);
    const Source part = source.subspan(begin, std::min(source.size() - begin, tile.frames * frame));
    if (!filling_.writer.casts()) return part;
    filling_.writer.run(plain_copy(), row, cast_.data(), part);
    return {cast_.data(), filling_.writer.written(part.size())};
  }

  const Filling& filling_;
  std::size_t rows_;    // of a tile
  std::size_t frames_;  // of a tile
  alignas(kCacheLine) std::array<std::byte, kTileBytes> memory_;
  alignas(kCacheLine) std::array<std::byte, kTileBytes> cast_;  // a row's part of a tile
};

void fill_time_major(const Filling& filling) {
  const std::size_t frame_bytes = filling.grid.frame_bytes;
  const bool whole_lines = frame_bytes % kCacheLine == 0 && !filling.writer.casts();
  if (whole_lines || frame_bytes > kTileBytes) return fill_frames(filling);
  Tiles(filling).fill();
}

}  // namespace

CastOverflows fill_tensor(const TensorGrid& grid, std::span<const Source> sources,
                          const CopyChoice& copies) {
  Writer writer(grid.cast);
  const auto too_long = [&](Source source) {
    return writer.written(source.size()) > grid.frames * grid.frame_bytes;
  };
  // A row that passes its place would overwrite the next one.
  if (sources.size() != grid.rows || std::any_of(sources.begin(), sources.end(), too_long)) {
    std::abort();
  }
  if (grid.payload.empty()) return {};
  const Filling filling{grid, sources, copies, writer};
  if (grid.layout == Layout::time_major) {
    fill_time_major(filling);
  } else {
    fill_batch_major(filling);
  }
  finish_streams();
  return writer.overflows();
}

}  // namespace batchwright
