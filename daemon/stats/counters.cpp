#include "daemon/stats/counters.h"

namespace batchwright {

namespace {

constexpr std::size_t kCounters = static_cast<std::size_t>(FeedCounter::count);

// In the order of the enumeration. A name says its unit unless it counts events.
constexpr std::array<CounterRow, kCounters> kRows{{
    {"batches_assembled", "Batches put together in a slot, repetitions included."},
    {"batches_delivered", "Batches sent to subscribers, once for each of them."},
    {"bytes_assembled", "Bytes of the batches put together in a slot."},
    {"bytes_delivered", "Bytes of the batches sent to subscribers, once for each of them."},
    {"sequences_delivered", "Rows of the batches sent to subscribers, once for each of them."},
    {"frames_delivered", "Real frames of the batches sent to subscribers, padding left out."},
    {"padded_frames_delivered",
     "Frames of the batches sent to subscribers, padding included: rows times longest length."},
    {"batches_shared", "Deliveries that found their batch already in a slot."},
    {"batches_reassembled", "Batches put together again because they had left their slot."},
    {"corrupt_records", "Records that failed verification."},
    {"sequences_skipped", "Sequences left out of a batch because their record is corrupt."},
    {"releases", "Batches that subscribers gave back."},
    {"releases_unknown", "Releases of a batch that the subscriber did not hold."},
    {"epochs_planned", "Epochs that were planned."},
}};

constexpr std::array<CounterRow, kModeCounters> kModeRows{{
    {"batches", "Batches sent to subscribers, once for each of them."},
    {"sequences", "Rows of the batches sent to subscribers."},
    {"frames", "Real frames of the batches sent to subscribers, padding left out."},
    {"padded_frames", "Frames of the batches sent to subscribers, padding included."},
    {"bytes", "Bytes of the batches sent to subscribers."},
}};

static_assert(!kModeRows.back().name.empty(), "every counter of a mode has a row");
static_assert(static_cast<std::size_t>(wire::Mode::queue) == kModes.size() - 1);
static_assert(!kRows.back().name.empty(), "every counter has a row");

}  // namespace

const CounterRow& describe(FeedCounter counter) {
  return kRows.at(static_cast<std::size_t>(counter));
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

void FeedCounters::add(wire::Mode mode, const Delivered& delivered) noexcept {
  add(FeedCounter::batches_delivered);
  add(FeedCounter::sequences_delivered, delivered.sequences);
  add(FeedCounter::frames_delivered, delivered.frames);
  add(FeedCounter::padded_frames_delivered, delivered.padded_frames);
  add(FeedCounter::bytes_delivered, delivered.bytes);
  const auto add_to = [&](ModeCounter counter, std::uint64_t amount) {
    by_mode_[index(mode, counter)].fetch_add(amount, std::memory_order_relaxed);
  };
  add_to(ModeCounter::batches, 1);
  add_to(ModeCounter::sequences, delivered.sequences);
  add_to(ModeCounter::frames, delivered.frames);
  add_to(ModeCounter::padded_frames, delivered.padded_frames);
  add_to(ModeCounter::bytes, delivered.bytes);
}

}  // namespace batchwright
