#include "daemon/delivery/feed/queue/queue_desk.h"

#include <algorithm>
#include <utility>

namespace batchwright {

QueueDesk::QueueDesk(WorkQueue queue, std::unique_ptr<QueueJournal> journal,
                     std::unique_ptr<Ledger> ledger, LeaseNumber first_lease)
    : queue_(std::move(queue)),
      journal_(std::move(journal)),
      ledger_(std::move(ledger)),
      next_lease_(journal_ ? std::max(first_lease, journal_->next_lease()) : first_lease) {}

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
  return ledger_ ? ledger_->released(holder.client, lease, true) : Result<void>{};
}

Result<void> QueueDesk::released(const Holder& holder, LeaseNumber lease) {
  const auto was_open = done(holder, lease);
  if (!was_open) return was_open.error();
  if (*was_open || !ledger_) return {};
  return ledger_->released(holder.client, lease, false);
}

Result<std::vector<LeaseNumber>> QueueDesk::claim(const Holder& holder,
                                                  std::span<const LeaseNumber> released,
                                                  std::span<const LeaseNumber> held) {
  for (const LeaseNumber lease : released) {
    if (const auto noted = done(holder, lease); !noted) return noted.error();
  }
  return queue_.claim(holder.owner, held);
}

bool QueueDesk::is_over_for(QueueOwner owner, Epoch epoch, std::uint64_t batches) const {
  if (queue_.epoch() != epoch) return queue_.epoch() > epoch;
  return queue_.exhausted(batches) && queue_.out_beside(owner) == 0;
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
  if (!journal_) return {};
  if (!journal) return journal.error();
  journal_->take_up(std::move(*journal));
  queue_.begin(next);
  return {};
}

void QueueDesk::close() {
  journal_.reset();
  ledger_.reset();
}

}  // namespace batchwright
