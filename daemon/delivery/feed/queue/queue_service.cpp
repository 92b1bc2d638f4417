#include "daemon/delivery/feed/queue/queue_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <utility>

namespace batchwright {
namespace {

namespace json = boost::json;
using Kind = JournalRecord::Kind;

/// The same after a reconnect, and in every feed.
std::string token_text(const ClientInfo& client) { return fmt::format("{:016x}", client.token); }

LedgerLine line_of(const json::object& object) { return {json::serialize(object) + "\n"}; }

LedgerLine delivered_line(const std::string& feed, const QueueService::Holder& holder,
                          LeaseNumber lease, const BatchId& id, bool rehearsal,
                          const BatchSource& source) {
  std::vector<Row> rows;
  source.rows(id.index, rows);
  json::array ordinals(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) ordinals[i] = rows[i].ordinal;
  return line_of({{"event", "delivered"},
                  {"feed", feed},
                  {"client", token_text(holder.client)},
                  {"pid", holder.client.pid},
                  {"subscription", holder.subscription.value},
                  {"lease", lease.value},
                  {"epoch", id.epoch.value},
                  {"step", id.index.value / source.outline().world},
                  {"index", id.index.value},
                  {"rehearsal", rehearsal},
                  {"ordinals", std::move(ordinals)}});
}

}  // namespace

QueueService::QueueService(WorkQueue queue, std::optional<JournalState> journal,
                           std::optional<std::string> ledger, LeaseNumber first_lease)
    : queue_(std::move(queue)),
      journal_(std::move(journal)),
      ledger_(ledger ? std::optional(utf8(*ledger)) : std::nullopt),
      next_lease_(journal_ ? std::max(first_lease, journal_->next_lease) : first_lease) {}

void QueueService::note(Record record) {
  records_.push_back(std::move(record));
  last_record_ = ++noted_;
}

void QueueService::note_ended(const ClientInfo& client, LeaseNumber lease, std::string_view what) {
  if (!ledger_) return;
  note(line_of({{"event", what},
                {"feed", *ledger_},
                {"client", token_text(client)},
                {"pid", client.pid},
                {"lease", lease.value}}));
}

Result<LeaseNumber> QueueService::give(const Holder& holder, const BatchSource& source,
                                       const BatchId& id, bool rehearsal) {
  const LeaseNumber lease{next_lease_.value++};
  if (holder.in_queue && !rehearsal) {
    if (source.outline().fingerprint != journal_->fingerprint) {
      return Error{ErrorCode::internal, "an epoch of the queue has another plan than its journal"};
    }
    queue_.give(lease, id.index, holder.owner);
    journal_->next_lease = next_lease_;
    note(JournalRecord{0, Kind::given, lease.value, id.index.value, holder.owner.value});
  }
  if (ledger_) note(delivered_line(*ledger_, holder, lease, id, rehearsal, source));
  return lease;
}

/// Noted nowhere once the desk is closed: then the batch stays given, and is given once more to the
/// client that comes next.
bool QueueService::done(const Holder& holder, LeaseNumber lease) {
  if (!holder.in_queue || !queue_.done(lease, holder.owner)) return false;
  if (!journal_) return true;
  note(JournalRecord{0, Kind::done, lease.value, 0, holder.owner.value});
  note_ended(holder.client, lease, "done");
  return true;
}

void QueueService::released(const Holder& holder, LeaseNumber lease) {
  if (!done(holder, lease)) note_ended(holder.client, lease, "released");
}

/// Noted nowhere once the desk is closed, like a batch that is done.
std::optional<QueueService::Undone> QueueService::died_with(QueueOwner owner, LeaseNumber lease,
                                                            std::uint32_t attempts) {
  const auto out = queue_.out().find(lease);
  if (out == queue_.out().end() || out->second.owner != owner) return {};
  const BatchIndex index = out->second.index;
  const std::uint32_t times = queue_.attempt(index);
  const bool set_aside = attempts != 0 && times >= attempts;
  JournalRecord record{0, Kind::returned, lease.value, index.value, owner.value};
  if (set_aside) {
    queue_.set_aside(lease, owner);
    record.kind = Kind::done;
    record.second = JournalRecord::kSetAside;
  } else {
    queue_.give_up(lease, owner);
  }
  if (journal_) note(record);
  return Undone{index, times, set_aside};
}

std::optional<QueueService::Undone> QueueService::gave_up(const Holder& holder, LeaseNumber lease,
                                                          std::uint32_t attempts) {
  std::optional<Undone> undone;
  if (holder.in_queue) undone = died_with(holder.owner, lease, attempts);
  const char* what = "released";
  if (undone) what = undone->set_aside ? "set aside" : "returned";
  note_ended(holder.client, lease, what);
  return undone;
}

QueueService::Returned QueueService::end_keeping(Time now, std::uint32_t attempts) {
  Returned returned;
  std::set<QueueOwner> seen;
  for (const auto& [lease, owner] : queue_.due(now)) {
    returned.any = true;
    if (!seen.insert(owner).second) {
      queue_.come_back(lease);
      continue;
    }
    if (const auto undone = died_with(owner, lease, attempts)) returned.undone.push_back(*undone);
  }
  return returned;
}

std::vector<LeaseNumber> QueueService::claim(const Holder& holder,
                                             std::span<const LeaseNumber> released,
                                             std::span<const LeaseNumber> held) {
  for (const LeaseNumber lease : released) done(holder, lease);
  return queue_.claim(holder.owner, held);
}

bool QueueService::is_over_for(QueueOwner owner, Epoch epoch, std::uint64_t batches,
                               bool waits) const {
  if (queue_.epoch() != epoch) return queue_.epoch() > epoch;
  const std::size_t others = waits ? queue_.out_beside(owner) : queue_.out().size();
  return queue_.exhausted(batches) && others == 0;
}

std::optional<Epoch> QueueService::next_epoch(std::uint64_t batches) const {
  if (!journal_ || beginning_ || batches == 0 || !queue_.over(batches)) return {};
  return Epoch{queue_.epoch().value + 1};
}

void QueueService::begin(Epoch next, const Fingerprint& fingerprint) {
  records_.push_back(BeginJournal{next, fingerprint, journal_->next_lease});
  beginning_ = Beginning{next, fingerprint, ++noted_};
}

std::optional<Epoch> QueueService::written(std::uint64_t upto) {
  if (!beginning_ || upto < beginning_->record) return {};
  const Epoch epoch = beginning_->epoch;
  journal_->fingerprint = beginning_->fingerprint;
  queue_.begin(epoch);
  beginning_.reset();
  return epoch;
}

std::optional<Epoch> QueueService::beginning() const {
  return beginning_ ? std::optional(beginning_->epoch) : std::nullopt;
}

void QueueService::close() {
  if (journal_ || ledger_) records_.push_back(CloseFiles{});
  journal_.reset();
  ledger_.reset();
  beginning_.reset();
}

}  // namespace batchwright
