#include "daemon/stats/counters.h"

namespace batchwright {

namespace {

constexpr std::size_t kCounters = static_cast<std::size_t>(FeedCounter::count);

// In the order of the enumeration. A name says its unit unless it counts events.
constexpr std::array<CounterRow, kCounters> kCounterRows{{
    {"batches_assembled", "Batches put together in a slot, repetitions included."},
    {"batches_delivered", "Batches sent to subscribers, once for each of them.",
     ModeCounter::batches},
    {"bytes_assembled", "Bytes of the batches put together in a slot."},
    {"bytes_delivered", "Bytes of the batches sent to subscribers, once for each of them.",
     ModeCounter::bytes},
    {"sequences_delivered", "Rows of the batches sent to subscribers, once for each of them.",
     ModeCounter::sequences},
    {"frames_delivered", "Real frames of the batches sent to subscribers, padding left out.",
     ModeCounter::frames},
    {"padded_frames_delivered",
     "Frames of the batches sent to subscribers, padding included: rows times longest length.",
     ModeCounter::padded_frames},
    {"batches_shared", "Deliveries that found their batch already in a slot."},
    {"batches_reassembled", "Batches put together again because they had left their slot."},
    {"corrupt_records", "Different records that failed verification."},
    {"sequences_skipped", "Sequences left out of a batch because their record is corrupt."},
    {"releases", "Batches that subscribers gave back."},
    {"releases_unknown", "Releases of a batch that the subscriber did not hold."},
    {"epochs_planned", "Epochs that were planned."},
    {"cast_overflows", "Finite values that became infinite as they were cast to a feed's dtype."},
    {"noise_left_out", "Rows that got no noise though it was drawn: they or it are silent."},
    {"samples_saturated", "Samples of rows of sound that did not fit int16."},
    {"queue_returns", "Batches of a queue that a worker gave back undone, or ended with."},
    {"queue_set_aside", "Batches of a queue that were set aside after queue_attempts of these."},
}};

constexpr std::array<CounterRow, kModeCounters> kModeRows{{
    {"batches", "Batches sent to subscribers, once for each of them."},
    {"sequences", "Rows of the batches sent to subscribers."},
    {"frames", "Real frames of the batches sent to subscribers, padding left out."},
    {"padded_frames", "Frames of the batches sent to subscribers, padding included."},
    {"bytes", "Bytes of the batches sent to subscribers."},
}};

// An array with too few rows is filled up with empty ones, so the last one shows it.
static_assert(!kModeRows.back().name.empty(), "every counter of a mode has a row");
static_assert(static_cast<std::size_t>(wire::Mode::queue) == kModes.size() - 1);
static_assert(!kCounterRows.back().name.empty(), "every counter has a row");

}  // namespace

const CounterRow& describe(FeedCounter counter) {
  return kCounterRows.at(static_cast<std::size_t>(counter));
}

const CounterRow& describe(ModeCounter counter) {
  return kModeRows.at(static_cast<std::size_t>(counter));
}

const char* name_of(wire::Mode mode) {
  switch (mode) {
    case wire::Mode::replica: return "replica";
    case wire::Mode::sharded: return "sharded";
    case wire::Mode::queue: return "queue";
  }
  return "unknown";
}

std::optional<double> padded_share(std::uint64_t frames, std::uint64_t padded) {
  // No share, and not 0 %: nothing was delivered that could be padded.
  if (padded == 0) return {};
  return 1.0 - static_cast<double>(frames) / static_cast<double>(padded);
}

std::uint64_t FeedCounters::get(FeedCounter counter) const noexcept {
  // A sum is made when it is read: deliveries are counted by mode alone, once each.
  const auto& by_mode = kCounterRows[static_cast<std::size_t>(counter)].sum_of;
  if (!by_mode) return cells_[static_cast<std::size_t>(counter)];
  std::uint64_t sum = 0;
  for (const wire::Mode mode : kModes) sum += get(mode, *by_mode);
  return sum;
}

void FeedCounters::add(wire::Mode mode, const Delivered& delivered) noexcept {
  const auto add_to = [&](ModeCounter counter, std::uint64_t amount) {
    by_mode_[index(mode, counter)] += amount;
  };
  add_to(ModeCounter::batches, 1);
  add_to(ModeCounter::sequences, delivered.sequences);
  add_to(ModeCounter::frames, delivered.frames);
  add_to(ModeCounter::padded_frames, delivered.padded_frames);
  add_to(ModeCounter::bytes, delivered.bytes);
}

}  // namespace batchwright
