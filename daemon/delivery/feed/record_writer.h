#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/delivery/feed/live/record/step_record.h"
#include "daemon/delivery/feed/live/spool/spool.h"
#include "daemon/delivery/feed/queue/journal.h"
#include "daemon/delivery/feed/queue/queue_service.h"

namespace batchwright {

/// Files that a feed writes. Its record has a writer of its own, for each of its steps waits for
/// the disk.
struct RecordFiles {
  std::unique_ptr<KeptFile> journal;             ///< Null where the feed has no queue.
  std::unique_ptr<KeptFile> ledger;              ///< Null where none is kept.
  Sync sync = {};                                ///< For the journal.
  std::unique_ptr<StepRecord> record = nullptr;  ///< Null where no steps are recorded.
  std::unique_ptr<Spool> spool = nullptr;        ///< Null except for a live feed that has one.
};

/// Hands a feed's records to the kernel on a thread of their own, in the order in which they are
/// put, those that have gathered by one call. Nothing else waits for it.
///
/// After a failure nothing more is written: a file with a gap would be worse than none. What is put
/// is bounded by the batches that clients hold, each of which has no more than three records; steps
/// by the bytes of the pool.
/// Lifetime: `elsewhere` outlives it; at the end, what was put is written once its thread has
/// ended. Threads: the event loop only, except for the work that it has done elsewhere.
class RecordWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Has `work` done on the thread of the files, in order. told() is for what it returns.
  using Elsewhere = std::function<void(std::function<Written()> work)>;

  RecordWriter(RecordFiles files, Elsewhere elsewhere);

  void put(std::vector<Record> records);
  /// Work is done. What of it is to be told: of a failure only once.
  Written told(Written written);
  /// The failure of which told() has heard nothing. To be asked once the thread has ended.
  std::optional<Error> untold() const;

  /// What the thread is at, such as "journal PATH", and since when; empty: nothing.
  struct AtWork {
    std::string name;
    Time since;
  };
  std::optional<AtWork> at_work() const;

 private:
  struct Queue;

  Elsewhere elsewhere_;
  std::shared_ptr<Queue> queue_;
  bool has_told_failure_ = false;
};

}  // namespace batchwright
