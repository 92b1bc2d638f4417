#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/stats/histogram.h"

namespace batchwright {

/// The parts of a batch's way that take time. The table in stages.cpp has name and meaning.
enum class Stage : std::uint8_t { readahead, fetch, assemble, wait_for_slot, deliver, count };

inline constexpr std::size_t kStages = static_cast<std::size_t>(Stage::count);

struct StageRow {
  std::string_view name;
  std::string_view help;
};
const StageRow& describe(Stage stage);

/// The durations of one feed's stages, and the part of assembling spent waiting for data.
/// Threads: add() from any, figures from any; all relaxed.
class StageTimes {
 public:
  void add(Stage stage, Histogram::Duration duration) noexcept {
    times_[static_cast<std::size_t>(stage)].add(duration);
  }
  /// A part of an assembly's time in which its thread slept, since a page was not in memory yet.
  void add_storage_wait(Histogram::Duration duration) noexcept {
    storage_wait_ns_.fetch_add(static_cast<std::uint64_t>(duration.count()),
                               std::memory_order_relaxed);
  }
  /// Bytes of which some were not in place until readahead brought them in.
  void add_brought_in(std::uint64_t bytes) noexcept {
    brought_in_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  const Histogram& of(Stage stage) const noexcept {
    return times_[static_cast<std::size_t>(stage)];
  }
  double storage_wait_seconds() const noexcept {
    return 1e-9 * static_cast<double>(storage_wait_ns_.load(std::memory_order_relaxed));
  }
  std::uint64_t brought_in_bytes() const noexcept {
    return brought_in_bytes_.load(std::memory_order_relaxed);
  }

 private:
  std::array<Histogram, kStages> times_;
  std::atomic<std::uint64_t> brought_in_bytes_{0};
  std::atomic<std::uint64_t> storage_wait_ns_{0};
};

}  // namespace batchwright
