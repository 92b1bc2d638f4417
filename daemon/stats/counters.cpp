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

static_assert(!kRows.back().name.empty(), "every counter has a row");

}  // namespace

const CounterRow& describe(FeedCounter counter) {
  return kRows.at(static_cast<std::size_t>(counter));
}

}  // namespace batchwright
