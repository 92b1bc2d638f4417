#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/journal.h"
#include "daemon/delivery/feed/queue/record_writer.h"
#include "daemon/delivery/feed/queue/work_queue.h"

namespace batchwright {

/// What a feed notes of its deliveries: leases, the work queue with its journal, and the ledger.
/// What must survive the daemon is written before it takes effect: at once, or by a RecordWriter,
/// which holds messages until then.
///
/// An error of a call that writes ends the feed: a journal or ledger with a gap would be worse than
/// none. After close() nothing is written, and a batch that is released then stays given.
/// Threads: one at a time.
class QueueDesk {
 public:
  using Time = WorkQueue::Time;

  /// A client's subscription.
  struct Holder {
    const ClientInfo& client;
    SubscriptionNumber subscription;
    QueueOwner owner;
    bool in_queue;
  };

  /// `journal`: null where the feed has no queue. `ledger`: null where none is kept. Leases count
  /// from `first_lease`, or from behind those that the journal knows.
  QueueDesk(WorkQueue queue, std::unique_ptr<QueueJournal> journal, std::unique_ptr<Ledger> ledger,
            LeaseNumber first_lease);

  /// Has records written elsewhere from now on. What could not be written ends the feed, too.
  void write_elsewhere(RecordWriter::Elsewhere elsewhere);
  /// Null where records are written at once, or none are.
  RecordWriter* writer() { return writer_.get(); }
  const RecordWriter* writer() const { return writer_.get(); }

  /// Whether there is a queue, and its journal is open.
  bool is_open() const { return journal_ != nullptr; }
  const QueueJournal& journal() const { return *journal_; }
  bool keeps_ledger() const { return ledger_ != nullptr; }
  const WorkQueue& queue() const { return queue_; }
  Epoch epoch() const { return queue_.epoch(); }

  /// Notes the delivery of a batch, and returns its lease. A batch of the queue is out from here
  /// on. Errors: internal (the queue's epoch has another plan than its journal), io_error.
  Result<LeaseNumber> give(const Holder& holder, const EpochSource& source, const BatchId& id,
                           bool rehearsal);
  /// The batch of a lease is done; the client may hold it for longer. False where it is no batch of
  /// the queue that was still to be done. Errors: io_error.
  Result<bool> done(const Holder& holder, LeaseNumber lease);
  /// The client holds the batch no longer, and so it is done. Errors: io_error.
  Result<void> released(const Holder& holder, LeaseNumber lease);

  /// A batch that was begun and is not done.
  struct Undone {
    BatchIndex index;
    std::uint32_t times = 0;  ///< That this happened to it.
    bool set_aside = false;   ///< Else it is given to another.
  };
  /// The client gives the batch back undone. It is set aside once that was so `attempts` times; 0:
  /// never. Empty where it is no batch of the queue that was still to be done; then it is released.
  /// Errors: io_error.
  Result<std::optional<Undone>> gave_up(const Holder& holder, LeaseNumber lease,
                                        std::uint32_t attempts);
  /// The same for a client that ended with the batch in hand.
  Result<std::optional<Undone>> died_with(QueueOwner owner, LeaseNumber lease,
                                          std::uint32_t attempts);

  /// A client is there again. What it has released meanwhile is done; of what it says it holds, the
  /// leases that are its own are returned, and all else of its batches comes back. Errors:
  /// io_error.
  Result<std::vector<LeaseNumber>> claim(const Holder& holder,
                                         std::span<const LeaseNumber> released,
                                         std::span<const LeaseNumber> held);
  /// A client is gone: what it took comes back, or is kept for it for a while.
  void come_back(LeaseNumber lease) { queue_.come_back(lease); }
  void keep(QueueOwner owner, Time until) { queue_.keep(owner, until); }
  void keep_all(Time until) { queue_.keep_all(until); }
  /// When the first batch that is kept is kept no longer.
  std::optional<Time> next_return() const { return queue_.next_return(); }
  /// Takes back what was kept until `now`. Of the batches of each client the first one is what it
  /// worked on, which counts: those are returned, and whether any batch came back. Errors:
  /// io_error.
  struct Returned {
    bool any = false;
    std::vector<Undone> undone;
  };
  Result<Returned> end_keeping(Time now, std::uint32_t attempts);

  /// Whether an epoch of so many batches is over for a holder in it: all is done except, where it
  /// `waits`, for what it holds itself. One that waits for the end with a batch in hand would else
  /// wait for itself; one that does not may still give its batch back undone.
  bool is_over_for(QueueOwner owner, Epoch epoch, std::uint64_t batches, bool waits) const;
  /// The epoch that the queue is to go on to, once each of the `batches` of this one is done and
  /// until begin(); empty: not yet. 0 batches: how many is not known.
  std::optional<Epoch> next_epoch(std::uint64_t batches) const;
  /// Brings the journal to its next epoch. The call that is returned waits for the disk, so it is
  /// for the writer's thread; begun() is for what it returns. Nothing is given meanwhile.
  std::function<Result<BegunJournal>()> begin(Epoch next, const Fingerprint& fingerprint);
  /// Errors: that of the journal. Nothing is taken up after close().
  Result<void> begun(Epoch next, Result<BegunJournal> journal);
  /// The epoch that is being begun.
  std::optional<Epoch> beginning() const { return beginning_; }

  void close();

 private:
  Result<void> note_done(const Holder& holder, LeaseNumber lease);

  WorkQueue queue_;
  std::unique_ptr<RecordWriter> writer_;
  std::unique_ptr<QueueJournal> journal_;
  std::unique_ptr<Ledger> ledger_;
  LeaseNumber next_lease_;
  std::optional<Epoch> beginning_;
};

}  // namespace batchwright
