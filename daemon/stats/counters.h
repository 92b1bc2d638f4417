#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Everything that is counted for a feed. The table in counters.cpp has name, unit and meaning.
enum class FeedCounter : std::uint8_t {
  batches_assembled,
  batches_delivered,
  bytes_assembled,
  bytes_delivered,
  sequences_delivered,
  frames_delivered,
  padded_frames_delivered,
  batches_shared,
  batches_reassembled,
  corrupt_records,
  sequences_skipped,
  releases,
  releases_unknown,
  epochs_planned,
  cast_overflows,
  noise_left_out,
  samples_saturated,
  queue_returns,
  queue_set_aside,
  count
};

/// The counters of deliveries, by mode of subscribing.
enum class ModeCounter : std::uint8_t { batches, sequences, frames, padded_frames, bytes, count };

struct CounterRow {
  std::string_view name;  ///< Name in /stats; /metrics puts batchwright_ before and _total behind.
  std::string_view help;
  std::optional<ModeCounter> sum_of = {};  ///< Not counted itself: the sum over the modes.
};

/// One row for each counter, in the order of the enumeration.
const CounterRow& describe(FeedCounter counter);

inline constexpr std::size_t kModeCounters = static_cast<std::size_t>(ModeCounter::count);
inline constexpr std::array kModes{wire::Mode::replica, wire::Mode::sharded, wire::Mode::queue};

const CounterRow& describe(ModeCounter counter);
const char* name_of(wire::Mode mode);

/// The amounts that one delivery adds.
struct Delivered {
  std::uint64_t sequences = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded_frames = 0;
  std::uint64_t bytes = 0;
};

/// The share of padding, where `padded` counts the real frames too; empty without frames.
std::optional<double> padded_share(std::uint64_t frames, std::uint64_t padded);

/// The counters of one feed. Threads: one at a time.
class FeedCounters {
 public:
  /// One that is not the sum over the modes: those come with each delivery.
  void add(FeedCounter counter, std::uint64_t amount = 1) noexcept {
    assert(!describe(counter).sum_of);
    cells_[static_cast<std::size_t>(counter)] += amount;
  }
  std::uint64_t get(FeedCounter counter) const noexcept;
  /// One batch to a subscriber of this mode.
  void add(wire::Mode mode, const Delivered& delivered) noexcept;
  std::uint64_t get(wire::Mode mode, ModeCounter counter) const noexcept {
    return by_mode_[index(mode, counter)];
  }

 private:
  static std::size_t index(wire::Mode mode, ModeCounter counter) noexcept {
    return static_cast<std::size_t>(mode) * kModeCounters + static_cast<std::size_t>(counter);
  }

  std::array<std::uint64_t, static_cast<std::size_t>(FeedCounter::count)> cells_{};
  std::array<std::uint64_t, kModes.size() * kModeCounters> by_mode_{};
};

}  // namespace batchwright
