#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

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
  count
};

struct CounterRow {
  std::string_view name;  ///< As in /stats; /metrics puts batchwright_ before and _total behind.
  std::string_view help;
};

/// One row for each counter, in the order of the enumeration.
const CounterRow& describe(FeedCounter counter);

/// The counters of one feed.
/// Threads: add() and get() from any; relaxed, so figures read together may be apart by events
/// that are happening.
class FeedCounters {
 public:
  void add(FeedCounter counter, std::uint64_t amount = 1) noexcept {
    cells_[static_cast<std::size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
  std::uint64_t get(FeedCounter counter) const noexcept {
    return cells_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(FeedCounter::count)> cells_{};
};

}  // namespace batchwright
