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

/// The groups of steps by which a recipe makes a row of sound or features; storage/features/recipe
/// has them.
enum class MakeStep : std::uint8_t {
  decode,
  resample,
  reverberation,
  noise,
  telephone,
  features,
  frames,
  count
};
inline constexpr std::size_t kMakeSteps = static_cast<std::size_t>(MakeStep::count);

struct StageRow {
  std::string_view name;
  std::string_view help;
};
const StageRow& describe(Stage stage);
const StageRow& describe(MakeStep step);

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
  /// A part of an assembly's time in which its thread could have run, and no processor was free.
  void add_processor_wait(Histogram::Duration duration) noexcept {
    processor_wait_ns_.fetch_add(static_cast<std::uint64_t>(duration.count()),
                                 std::memory_order_relaxed);
  }
  /// Bytes of which some were not in place until readahead brought them in.
  void add_brought_in(std::uint64_t bytes) noexcept {
    brought_in_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// Time in one step of the rows of a batch; its threads' time, which is a part of assembling.
  void add(MakeStep step, double seconds) noexcept {
    make_ns_[static_cast<std::size_t>(step)].fetch_add(static_cast<std::uint64_t>(seconds * 1e9),
                                                       std::memory_order_relaxed);
  }
  /// Sound that became rows, as long as it was stored.
  void add_sound(double seconds) noexcept {
    sound_ns_.fetch_add(static_cast<std::uint64_t>(seconds * 1e9), std::memory_order_relaxed);
  }
  double seconds_in(MakeStep step) const noexcept {
    return seconds_of(make_ns_[static_cast<std::size_t>(step)]);
  }
  double make_seconds() const noexcept {
    double sum = 0.0;
    for (const auto& each : make_ns_) sum += seconds_of(each);
    return sum;
  }
  double sound_seconds() const noexcept { return seconds_of(sound_ns_); }
  const Histogram& of(Stage stage) const noexcept {
    return times_[static_cast<std::size_t>(stage)];
  }
  double storage_wait_seconds() const noexcept { return seconds_of(storage_wait_ns_); }
  double processor_wait_seconds() const noexcept { return seconds_of(processor_wait_ns_); }
  std::uint64_t brought_in_bytes() const noexcept {
    return brought_in_bytes_.load(std::memory_order_relaxed);
  }

 private:
  static double seconds_of(const std::atomic<std::uint64_t>& nanoseconds) noexcept {
    return 1e-9 * static_cast<double>(nanoseconds.load(std::memory_order_relaxed));
  }

  std::array<Histogram, kStages> times_;
  std::array<std::atomic<std::uint64_t>, kMakeSteps> make_ns_{};
  std::atomic<std::uint64_t> sound_ns_{0};
  std::atomic<std::uint64_t> brought_in_bytes_{0};
  std::atomic<std::uint64_t> storage_wait_ns_{0};
  std::atomic<std::uint64_t> processor_wait_ns_{0};
};

}  // namespace batchwright
