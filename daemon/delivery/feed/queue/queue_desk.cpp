#include "daemon/delivery/feed/queue/queue_desk.h"

#include <algorithm>
#include <set>
#include <utility>

namespace batchwright {

QueueDesk::QueueDesk(WorkQueue queue, std::unique_ptr<QueueJournal> journal,
                     std::unique_ptr<Ledger> ledger, LeaseNumber first_lease)
    : queue_(std::move(queue)),
      journal_(std::move(journal)),
      ledger_(std::move(ledger)),
      next_lease_(journal_ ? std::max(first_lease, journal_->next_lease()) : first_lease) {}

void QueueDesk::write_elsewhere(RecordWriter::Elsewhere elsewhere) {
  if (!journal_ && !ledger_) return;
  writer_ = std::make_unique<RecordWriter>(std::move(elsewhere));
  if (journal_) journal_->write_by(writer_.get());
  if (ledger_) ledger_->write_by(writer_.get());
}

Result<LeaseNumber> QueueDesk::give(const Holder& holder, const EpochSource& source,
                                    const BatchId& id, bool rehearsal) {
  const LeaseNumber lease{next_lease_.value++};
  if (holder.in_queue && !rehearsal) {
    if (source.fingerprint != journal_->fingerprint()) {
      return Error{ErrorCode::internal, "an epoch of the queue has another plan than its journal"};
    }
    queue_.give(lease, id.index, holder.owner);
    if (auto noted = journal_->given(lease, id.index, holder.owner); !noted) return noted.error();
  }
  if (!ledger_) return lease;
  auto noted =
      ledger_->delivered({holder.client, holder.subscription, lease, id, rehearsal}, source.plan);
  return noted ? Result<LeaseNumber>(lease) : noted.error();
}

Result<bool> QueueDesk::done(const Holder& holder, LeaseNumber lease) {
  if (!holder.in_queue || !queue_.done(lease, holder.owner)) return false;
  auto noted = note_done(holder, lease);
  return noted ? Result<bool>(true) : noted.error();
}

/// Nowhere once the desk is closed: then the batch stays given, and is given once more to the
/// client that comes next.
Result<void> QueueDesk::note_done(const Holder& holder, LeaseNumber lease) {
  if (!journal_) return {};
  if (auto noted = journal_->done(lease, holder.owner); !noted) return noted;
  return ledger_ ? ledger_->ended(holder.client, lease, "done") : Result<void>{};
}

Result<void> QueueDesk::released(const Holder& holder, LeaseNumber lease) {
  const auto was_open = done(holder, lease);
  if (!was_open) return was_open.error();
  if (*was_open || !ledger_) return {};
  return ledger_->ended(holder.client, lease, "released");
}

/// Noted nowhere once the desk is closed, like a batch that is done.
Result<std::optional<QueueDesk::Undone>> QueueDesk::died_with(QueueOwner owner, LeaseNumber lease,
                                                              std::uint32_t attempts) {
  const auto out = queue_.out().find(lease);
  if (out == queue_.out().end() || out->second.owner != owner) return std::optional<Undone>();
  const BatchIndex index = out->second.index;
  const std::uint32_t times = queue_.attempt(index);
  const bool set_aside = attempts != 0 && times >= attempts;
  Result<void> noted;
  if (set_aside) {
    queue_.set_aside(lease, owner);
    if (journal_) noted = journal_->set_aside(lease, owner);
  } else {
    queue_.give_up(lease, owner);
    if (journal_) noted = journal_->returned(lease, index, owner);
  }
  if (!noted) return noted.error();
  return std::optional(Undone{index, times, set_aside});
}

Result<std::optional<QueueDesk::Undone>> QueueDesk::gave_up(const Holder& holder, LeaseNumber lease,
                                                            std::uint32_t attempts) {
  const auto undone = holder.in_queue ? died_with(holder.owner, lease, attempts)
                                      : Result<std::optional<Undone>>(std::optional<Undone>());
  if (!undone || !ledger_) return undone;
  const char* what = "released";
  if (*undone) what = (*undone)->set_aside ? "set aside" : "returned";
  if (auto noted = ledger_->ended(holder.client, lease, what); !noted) return noted.error();
  return undone;
}

Result<QueueDesk::Returned> QueueDesk::end_keeping(Time now, std::uint32_t attempts) {
  Returned returned;
  std::set<QueueOwner> seen;
  for (const auto& [lease, owner] : queue_.due(now)) {
    returned.any = true;
    if (!seen.insert(owner).second) {
      queue_.come_back(lease);
      continue;
    }
    const auto undone = died_with(owner, lease, attempts);
    if (!undone) return undone.error();
    if (*undone) returned.undone.push_back(**undone);
  }
  return returned;
}

Result<std::vector<LeaseNumber>> QueueDesk::claim(const Holder& holder,
                                                  std::span<const LeaseNumber> released,
                                                  std::span<const LeaseNumber> held) {
  for (const LeaseNumber lease : released) {
    if (const auto noted = done(holder, lease); !noted) return noted.error();
  }
  return queue_.claim(holder.owner, held);
}

bool QueueDesk::is_over_for(QueueOwner owner, Epoch epoch, std::uint64_t batches,
                            bool waits) const {
  if (queue_.epoch() != epoch) return queue_.epoch() > epoch;
  const std::size_t others = waits ? queue_.out_beside(owner) : queue_.out().size();
  return queue_.exhausted(batches) && others == 0;
}

std::optional<Epoch> QueueDesk::next_epoch(std::uint64_t batches) const {
  if (beginning_ || batches == 0 || !queue_.over(batches)) return {};
  return Epoch{queue_.epoch().value + 1};
}

std::function<Result<BegunJournal>()> QueueDesk::begin(Epoch next, const Fingerprint& fingerprint) {
  beginning_ = next;
  return journal_->beginning(next, fingerprint);
}

Result<void> QueueDesk::begun(Epoch next, Result<BegunJournal> journal) {
  beginning_.reset();
  if (!journal_) {
    if (writer_ && journal) writer_->close(std::move(journal->file));
    return {};
  }
  if (!journal) return journal.error();
  journal_->take_up(std::move(*journal));
  queue_.begin(next);
  return {};
}

void QueueDesk::close() {
  if (writer_) {
    if (journal_) writer_->close(journal_->hand_over());
    if (ledger_) writer_->close(ledger_->hand_over());
    writer_->stop_holding();
  }
  journal_.reset();
  ledger_.reset();
}

}  // namespace batchwright
