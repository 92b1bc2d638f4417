#include "storage/features/frontend/augment/room.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "storage/features/frontend/augment/energy.h"
#include "storage/features/frontend/spectrum/frame_kernel.h"

namespace batchwright {
namespace {

/// Frames of sound that are transformed before the first of them is filtered.
constexpr std::size_t kColumns = 4 * kFrameLanes;

/// A sample becomes at most so many times as large, and stays a float before it is normalised.
constexpr double kMostGain = 1e24;

Error bad_room(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// Samples of a block: about an eighth of the response, so that there are few parts, and two to the
/// power of 8 to 12, so that the frames stay in the cache.
std::size_t block_for(std::size_t taps) {
  return std::clamp(std::bit_ceil(taps / 8 + 1), std::size_t{1} << 8, std::size_t{1} << 12);
}

Result<std::size_t> find_direct_path(std::span<const float> response) {
  if (response.empty() || response.size() > Room::kMostTaps) {
    return bad_room(fmt::format("an impulse response of {} taps; allowed: 1 to {}", response.size(),
                                Room::kMostTaps));
  }
  std::size_t largest = 0;
  double sum = 0;
  for (std::size_t i = 0; i < response.size(); ++i) {
    if (!std::isfinite(response[i])) {
      return bad_room(fmt::format("tap {} of an impulse response is {}; allowed: finite numbers", i,
                                  response[i]));
    }
    if (std::abs(response[i]) > std::abs(response[largest])) largest = i;
    sum += std::abs(static_cast<double>(response[i]));
  }
  if (sum > kMostGain) {
    return bad_room(
        fmt::format("an impulse response whose taps have magnitudes of {} together; "
                    "allowed: up to {}",
                    sum, kMostGain));
  }
  if (response[largest] == 0) {
    return bad_room(fmt::format("an impulse response of {} taps, all 0; allowed: one that is not",
                                response.size()));
  }
  return largest;
}

}  // namespace

Result<void> check(const ReverberationOptions& options) {
  if (options.probability >= 0 && options.probability <= 1) return {};
  return bad_room(
      fmt::format("reverberation_probability {}; allowed: 0 to 1", options.probability));
}

RoomDraw draw_room(const DrawKey& key, const ReverberationOptions& options, std::uint32_t rooms) {
  Draws draws(key, DrawStage::reverberation);
  RoomDraw draw;
  draw.applies = draws.chance(options.probability);
  draw.room = draws.below(rooms);
  return draw;
}

Result<Room> Room::create(std::span<const float> response) {
  const auto direct_path = find_direct_path(response);
  if (!direct_path) return direct_path.error();
  const std::size_t block = block_for(response.size());
  auto plan = FftPlan<float>::create(static_cast<std::uint32_t>(2 * block));
  if (!plan) return plan.error();
  Room room(*std::move(plan), response.size());
  room.direct_path_ = *direct_path;
  room.part_count_ = (response.size() + block - 1) / block;
  const std::size_t bins = block + 1;
  room.parts_.resize(bins * room.part_count_ * 2);
  FrameMemory<float> frames(2 * block * kFrameLanes);
  FrameMemory<float> scratch(2 * block * kFrameLanes);
  FrameMemory<float> columns(bins * 2 * kFrameLanes);
  for (std::size_t first = 0; first < room.part_count_; first += kFrameLanes) {
    // A part in each lane, each followed by as many zeros.
    std::fill_n(frames.data(), 2 * block * kFrameLanes, 0.0F);
    const std::size_t last = std::min(first + kFrameLanes, room.part_count_);
    for (std::size_t i = first * block; i < std::min(last * block, response.size()); ++i) {
      frames.data()[i % block * kFrameLanes + i / block - first] = response[i];
    }
    frame_kernel().transform(room.plan_.tables(), frames.data(), scratch.data(), columns.data(),
                             kFrameLanes);
    for (std::size_t k = 0; k < 2 * bins; ++k) {
      for (std::size_t part = first; part < last; ++part) {
        room.parts_[(k / 2 * room.part_count_ + part) * 2 + k % 2] =
            columns.data()[k * kFrameLanes + part - first];
      }
    }
  }
  return room;
}

void Reverberation::resize(const Room& room) {
  const std::size_t points = room.plan_.tables().points;
  const std::size_t block = points / 2;
  // Rows begin on the boundary of a line.
  const std::size_t history = (room.part_count_ + kFrameLanes - 2) / kFrameLanes * kFrameLanes;
  if (points == points_ && history == history_) return;
  points_ = points;
  history_ = history;
  row_ = history_ + kColumns;
  samples_.assign((kColumns + 1) * block, 0.0F);
  frames_ = FrameMemory<float>(points * kFrameLanes);
  scratch_ = FrameMemory<float>(points * kFrameLanes);
  spectrum_ = FrameMemory<float>((block + 1) * 2 * kFrameLanes);
  columns_ = FrameMemory<float>((block + 1) * 2 * row_);
}

/// The last block and columns that were read come before those that are read next.
void Reverberation::keep_history(std::size_t block, bool begins) {
  if (begins) {
    std::fill_n(samples_.begin(), block, 0.0F);
  } else {
    std::copy(samples_.end() - static_cast<std::ptrdiff_t>(block), samples_.end(),
              samples_.begin());
  }
  for (std::size_t k = 0; k < 2 * (block + 1); ++k) {
    float* const row = columns_.data() + k * row_;
    if (begins) {
      std::fill_n(row, history_, 0.0F);
    } else {
      std::memmove(row, row + kColumns, history_ * sizeof(float));
    }
  }
}

/// Transforms frames from number `first` on, kColumns of them: frame b has blocks b - 1 and b.
void Reverberation::read_blocks(const Room& room, std::span<const float> sound, std::size_t first) {
  const FftTables<float>& tables = room.plan_.tables();
  const std::size_t block = tables.points / 2;
  keep_history(block, first == 0);
  const std::size_t begin = std::min(first * block, sound.size());
  const std::size_t count = std::min(kColumns * block, sound.size() - begin);
  float* const fresh = samples_.data() + block;
  std::copy_n(sound.data() + begin, count, fresh);
  std::fill(fresh + count, samples_.data() + samples_.size(), 0.0F);
  for (std::size_t column = 0; column < kColumns; column += kFrameLanes) {
    float* const to = columns_.data() + history_ + column;
    if ((first + column) * block >= sound.size() + block) {  // behind the sound
      for (std::size_t k = 0; k < 2 * (block + 1); ++k)
        std::fill_n(to + k * row_, kFrameLanes, 0.0F);
      continue;
    }
    const float* const from = samples_.data() + column * block;
    for (std::size_t n = 0; n < tables.points; ++n) {
      for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
        frames_.data()[n * kFrameLanes + lane] = from[lane * block + n];
      }
    }
    frame_kernel().transform(tables, frames_.data(), scratch_.data(), to, row_);
  }
}

/// The second half of each filtered frame is a block of the convolution.
void Reverberation::write_blocks(const Room& room, std::size_t first, std::span<float> sound) {
  const FftTables<float>& tables = room.plan_.tables();
  const std::size_t block = tables.points / 2;
  const ColumnFilter filter{block + 1, room.part_count_, room.parts_.data(), row_};
  const std::size_t end = sound.size() + room.direct_path_;
  for (std::size_t column = 0; column < kColumns; column += kFrameLanes) {
    if ((first + column) * block >= end) return;
    frame_kernel().filter(filter, columns_.data() + history_ + column, spectrum_.data());
    frame_kernel().inverse(tables, spectrum_.data(), scratch_.data(), frames_.data());
    for (std::size_t lane = 0; lane < kFrameLanes; ++lane) {
      const std::size_t place = (first + column + lane) * block;
      const std::size_t from = std::clamp(room.direct_path_, place, place + block);
      const std::size_t to = std::clamp(end, from, place + block);
      for (std::size_t m = from; m < to; ++m) {
        sound[m - room.direct_path_] = frames_.data()[(m - place + block) * kFrameLanes + lane];
      }
    }
  }
}

void Reverberation::apply(const Room& room, bool normalise, std::span<float> sound) {
  const double before = energy_of(sound);
  const std::size_t block = room.plan_.tables().points / 2;
  const std::size_t blocks = (sound.size() + room.direct_path_ + block - 1) / block;
  resize(room);
  // What is written lies before what is read next: a sample comes out where it went in, at the
  // latest, and the block that is needed again is kept.
  for (std::size_t first = 0; first < blocks; first += kColumns) {
    read_blocks(room, sound, first);
    write_blocks(room, first, sound);
  }
  const double after = energy_of(sound);
  if (!normalise || after == 0) return;
  const double factor = std::sqrt(before / after);
  for (float& sample : sound) sample = static_cast<float>(static_cast<double>(sample) * factor);
}

}  // namespace batchwright
