#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/record/recorded_step.h"
#include "daemon/delivery/feed/live/spool_turn.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "formats/formats.h"

namespace batchwright {

/// A line of the ledger: a JSON object, and the line's end.
struct LedgerLine {
  std::string text;
};
/// The journal begins with an epoch, for earlier epochs no longer matter: its next file is on the
/// disk, and takes the place of the one before.
struct BeginJournal {
  Epoch epoch;
  Fingerprint fingerprint;  ///< The plan that the epoch is begun with.
  LeaseNumber next_lease;
};
/// No record follows: the files are closed.
struct CloseFiles {};
/// What a feed has written, in order. All but the last kind are numbered from 1, in that order.
using Record =
    std::variant<JournalRecord, LedgerLine, BeginJournal, RecordedStep, SpoolTurn, CloseFiles>;

/// How far the kernel has the records, or that it could not take one: of those after it none is
/// written then.
struct Written {
  std::uint64_t upto = 0;             ///< The last record that it has; 0: none.
  std::optional<Error> failure = {};  ///< It is told of once.
};

/// A queue's journal, as far as its feed knows it.
struct JournalState {
  std::string path;
  Fingerprint fingerprint;    ///< The plan that the current epoch was begun with.
  LeaseNumber next_lease{1};  ///< A number above that of every lease that it knows.
  /// What the file had lost when it was opened, as in a power cut.
  std::uint64_t lost_records = 0;
  std::uint64_t lost_batches = 0;  ///< Given before the last one, without a sound record of it.
};

/// What a feed notes of its deliveries: leases, the work queue, and the records of journal and
/// ledger, which RecordWriter writes. What must survive the daemon takes effect outside only once
/// its record is written.
///
/// After close() nothing is noted, and a batch that is released then stays given.
/// Threads: one at a time.
class QueueService {
 public:
  using Time = WorkQueue::Time;

  /// A client's subscription.
  struct Holder {
    const ClientInfo& client;
    SubscriptionNumber subscription;
    QueueOwner owner;
    bool in_queue;
  };

  /// `journal`: empty where the feed has no queue. `ledger`: the feed's name in the ledger; empty
  /// where none is kept. Leases count from `first_lease`, or from those that the journal knows.
  QueueService(WorkQueue queue, std::optional<JournalState> journal,
               std::optional<std::string> ledger, LeaseNumber first_lease);

  /// What is to be written, and was not taken before.
  std::vector<Record> take_records() { return std::exchange(records_, {}); }
  /// The number of the last record that anything told may rest on, so of the journal or the ledger;
  /// 0: there was none. No message waits for the journal to begin with an epoch.
  std::uint64_t last_record() const { return last_record_; }

  /// A turn of a live feed that has a spool.
  void note_turn(SpoolTurn turn) { note(std::move(turn)); }

  /// Whether there is a queue, and its journal is open.
  bool is_open() const { return journal_.has_value(); }
  const JournalState& journal() const { return *journal_; }
  bool keeps_ledger() const { return ledger_.has_value(); }
  const WorkQueue& queue() const { return queue_; }
  Epoch epoch() const { return queue_.epoch(); }

  /// Notes the delivery of a batch, and returns its lease. A batch of the queue is out from here
  /// on. Errors: internal (the queue's epoch has another plan than its journal).
  Result<LeaseNumber> give(const Holder& holder, const BatchSource& source, const BatchId& id,
                           bool rehearsal);
  /// The batch of a lease is done; the client may hold it for longer. False where it is no batch of
  /// the queue that was still to be done.
  bool done(const Holder& holder, LeaseNumber lease);
  /// The client holds the batch no longer, and so it is done.
  void released(const Holder& holder, LeaseNumber lease);

  /// A batch that was begun and is not done.
  struct Undone {
    BatchIndex index;
    std::uint32_t times = 0;  ///< That this happened to it.
    bool set_aside = false;   ///< Else it is given to another.
  };
  /// The client gives the batch back undone. It is set aside once that was so `attempts` times; 0:
  /// never. Empty where it is no batch of the queue that was still to be done; then it is released.
  std::optional<Undone> gave_up(const Holder& holder, LeaseNumber lease, std::uint32_t attempts);
  /// The same for a client that ended with the batch in hand.
  std::optional<Undone> died_with(QueueOwner owner, LeaseNumber lease, std::uint32_t attempts);

  /// A client is there again. What it has released meanwhile is done; of what it says it holds, the
  /// leases that are its own are returned, and all else of its batches comes back.
  std::vector<LeaseNumber> claim(const Holder& holder, std::span<const LeaseNumber> released,
                                 std::span<const LeaseNumber> held);
  /// A client is gone: what it took comes back, or is kept for it for a while.
  void come_back(LeaseNumber lease) { queue_.come_back(lease); }
  void keep(QueueOwner owner, Time until) { queue_.keep(owner, until); }
  void keep_all(Time until) { queue_.keep_all(until); }
  /// When the first batch that is kept is kept no longer.
  std::optional<Time> next_return() const { return queue_.next_return(); }
  /// Takes back what was kept until `now`. Of the batches of each client the first one is what it
  /// worked on, which counts: those are returned, and whether any batch came back.
  struct Returned {
    bool any = false;
    std::vector<Undone> undone;
  };
  Returned end_keeping(Time now, std::uint32_t attempts);

  /// Whether an epoch of so many batches is over for a holder in it: all is done except, where it
  /// `waits`, for what it holds itself. One that waits for the end with a batch in hand would else
  /// wait for itself; one that does not may still give its batch back undone.
  bool is_over_for(QueueOwner owner, Epoch epoch, std::uint64_t batches, bool waits) const;
  /// The epoch that the queue is to go on to, once each of the `batches` of this one is done and
  /// until begin(); empty: not yet. 0 batches: how many is not known.
  std::optional<Epoch> next_epoch(std::uint64_t batches) const;
  /// Has the journal brought to its next epoch. Nothing is given until that is written.
  void begin(Epoch next, const Fingerprint& fingerprint);
  /// The records up to this one are written. The epoch that the queue has gone on to by that;
  /// empty: none.
  std::optional<Epoch> written(std::uint64_t upto);
  /// The epoch that is being begun.
  std::optional<Epoch> beginning() const;

  void close();

 private:
  /// An epoch that begins once its record is written.
  struct Beginning {
    Epoch epoch;
    Fingerprint fingerprint;
    std::uint64_t record = 0;
  };

  void note(Record record);
  void note_ended(const ClientInfo& client, LeaseNumber lease, std::string_view what);

  WorkQueue queue_;
  std::optional<JournalState> journal_;
  std::optional<std::string> ledger_;
  LeaseNumber next_lease_;
  std::optional<Beginning> beginning_;
  std::vector<Record> records_;
  std::uint64_t noted_ = 0;  ///< Records that have a number.
  std::uint64_t last_record_ = 0;
};

}  // namespace batchwright
