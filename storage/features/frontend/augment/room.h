#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/features/frontend/augment/draws.h"
#include "storage/features/frontend/spectrum/fft_plan.h"
#include "storage/features/frontend/spectrum/frame_memory.h"

namespace batchwright {

struct ReverberationOptions {
  double probability = 1;
  bool normalise = true;  ///< Sound stays as loud as it was.
  friend bool operator==(const ReverberationOptions&, const ReverberationOptions&) = default;
};

/// Errors: invalid_argument: a probability outside 0 ... 1.
Result<void> check(const ReverberationOptions& options);

/// Which room a row lies in.
struct RoomDraw {
  bool applies = false;
  std::uint32_t room = 0;
};
/// `rooms` is how many impulse responses there are, at least 1.
RoomDraw draw_room(const DrawKey& key, const ReverberationOptions& options, std::uint32_t rooms);

/// A room's impulse response, transformed. It takes 16 bytes a tap, tables included.
/// Immutable. Threads: any.
class Room {
 public:
  static constexpr std::size_t kMostTaps = std::size_t{1} << 20;

  /// A response at the rate of the sound. Errors: invalid_argument: no taps or more than kMostTaps,
  /// one that is no finite number, all 0, or magnitudes of more than 1e24 together.
  static Result<Room> create(std::span<const float> response);

  std::size_t taps() const { return taps_; }
  /// The first tap of the largest magnitude, whatever its sign: what it delays sound by is undone.
  std::size_t direct_path() const { return direct_path_; }

 private:
  friend class Reverberation;
  Room(FftPlan<float> plan, std::size_t taps) : plan_(std::move(plan)), taps_(taps) {}

  FftPlan<float> plan_;  // of twice a block's samples
  std::size_t taps_;
  std::size_t direct_path_ = 0;
  std::size_t part_count_ = 0;  // blocks of taps
  std::vector<float> parts_;    // as ColumnFilter has them
};

/// Puts sound into rooms, with memory that is used again: it does not grow with the sound.
///
/// Overlap-save in parts (G. P. M. Egelmeers, P. C. W. Sommen, 1996): the response is cut into
/// blocks, and so is the sound; a frame of two blocks is transformed once and multiplied with each
/// part, later parts meeting it in later frames. Transforms stay small enough for the cache, and
/// eight frames go through them at once, however long the response is. In float32: off by 1e-6 of
/// the loudest sample at most.
/// Threads: one at a time.
class Reverberation {
 public:
  /// In place; the length and the place of the direct path stay. Sound of any size.
  void apply(const Room& room, bool normalise, std::span<float> sound);

 private:
  void resize(const Room& room);
  void keep_history(std::size_t block, bool begins);
  void read_blocks(const Room& room, std::span<const float> sound, std::size_t first);
  void write_blocks(const Room& room, std::size_t first, std::span<float> sound);

  std::vector<float> samples_;  // a block, and the blocks behind it
  FrameMemory<float> frames_{0};
  FrameMemory<float> scratch_{0};
  FrameMemory<float> spectrum_{0};
  FrameMemory<float> columns_{0};
  std::size_t points_ = 0;   // of the frames
  std::size_t history_ = 0;  // columns of earlier frames
  std::size_t row_ = 0;
};

}  // namespace batchwright
