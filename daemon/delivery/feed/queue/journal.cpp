#include "daemon/delivery/feed/queue/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

namespace batchwright {
namespace {

using Kind = JournalRecord::Kind;

constexpr const char* kWhat = "journal";

/// Waits for the disk. A new file takes the old one's place in one step, so that there is a whole
/// one at any moment. It is locked before it is emptied: another daemon's may lie there.
Result<BegunJournal> begin_anew(const std::string& path, std::span<const JournalRecord> records,
                                const QueueJournal::Sync& sync) {
  const std::string fresh = path + ".new";
  auto file = KeptFile::open_locked(kWhat, fresh);
  if (!file) return file.error();
  if (auto emptied = (*file)->cut(0); !emptied) return emptied.error();
  if (auto written = (*file)->write(std::as_bytes(records)); !written) return written.error();
  if (sync((*file)->descriptor()) != 0) return (*file)->failed("sync");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return (*file)->failed("rename");
  (*file)->moved(kWhat, path);
  return BegunJournal{std::move(*file), {records[0].first, records[0].second, records[0].third}};
}

/// What one sound record says of the queue. Returns the number of batches before a given one that
/// have none.
std::uint64_t take(const JournalRecord& record, WorkQueue& queue) {
  const LeaseNumber lease{record.first};
  const QueueOwner owner{record.third};
  switch (record.kind) {
    case Kind::plan: break;
    case Kind::epoch: queue.begin(Epoch{record.second}); break;
    case Kind::given: return queue.give(lease, BatchIndex{record.second}, owner);
    case Kind::done:
      if (record.second == JournalRecord::kSetAside) {
        queue.set_aside(lease, owner);
      } else {
        queue.done(lease, owner);
      }
      break;
    case Kind::returned: queue.give_up(lease, owner); break;
  }
  return 0;
}

namespace json = boost::json;

/// A kill can cut a write() off where the file goes on to its next page, and a full disk anywhere.
Result<bool> is_cut_off(const KeptFile& file) {
  const auto size = file.size();
  if (!size) return size.error();
  if (*size == 0) return false;
  char last = '\n';
  const auto got = file.read(std::as_writable_bytes(std::span(&last, 1)), *size - 1);
  if (!got) return got.error();
  return last != '\n';
}

/// The same after a reconnect, and in every feed.
std::string token_text(const ClientInfo& client) { return fmt::format("{:016x}", client.token); }

}  // namespace

QueueJournal::QueueJournal(std::string path, std::unique_ptr<KeptFile> file, Sync sync)
    : path_(std::move(path)), file_(std::move(file)), sync_(std::move(sync)) {
  if (!sync_) sync_ = [](int descriptor) { return ::fdatasync(descriptor); };
}

Result<std::unique_ptr<QueueJournal>> QueueJournal::open(const std::string& path,
                                                         const Fingerprint& fingerprint,
                                                         bool data_may_grow, WorkQueue& queue,
                                                         Sync sync) {
  auto file = KeptFile::open_locked(kWhat, path);
  if (!file) return file.error();
  std::unique_ptr<QueueJournal> journal(new QueueJournal(path, std::move(*file), std::move(sync)));
  if (auto read = journal->read(queue); !read) return read.error();
  if (!journal->begun_) {
    queue.begin(Epoch{0});
    auto begun = journal->beginning(Epoch{0}, fingerprint)();
    if (!begun) return begun.error();
    journal->take_up(std::move(*begun));
    return journal;
  }
  Fingerprint expected = journal->fingerprint_;
  if (data_may_grow) expected.data = fingerprint.data;
  if (expected != fingerprint) {
    return Error{ErrorCode::fingerprint_mismatch,
                 fmt::format("journal {} is of another plan: {} changed (expected {}, now {}); "
                             "change it back, or remove the file to begin the queue anew",
                             path, describe_difference(expected, fingerprint),
                             to_string(journal->fingerprint_), to_string(fingerprint))};
  }
  // Behind the last sound record there is what a death has left, and nothing else.
  if (auto cut = journal->file_->cut(journal->end_); !cut) return cut.error();
  if (auto room = journal->file_->check_room(); !room) return room.error();
  queue.keep_all(WorkQueue::Time::max());
  return journal;
}

/// Changes nothing in the file.
Result<void> QueueJournal::read(WorkQueue& queue) {
  const auto content = scan_journal(
      [this](std::span<std::byte> into, std::uint64_t offset) { return file_->read(into, offset); },
      [this, &queue](const JournalRecord& record) { take_in(record, queue); });
  if (!content) return content.error();
  if (auto sound = check_journal(*content, path_); !sound) return sound;
  begun_ = content->has_epoch;
  end_ = content->end;
  losses_.records = content->lost + content->trailing();
  return {};
}

void QueueJournal::take_in(const JournalRecord& record, WorkQueue& queue) {
  losses_.batches += take(record, queue);
  if (record.kind == Kind::plan) fingerprint_ = {record.first, record.second, record.third};
  if (record.kind == Kind::epoch) next_lease_ = LeaseNumber{record.first};
  if (record.kind == Kind::given) {
    next_lease_ = std::max(next_lease_, LeaseNumber{record.first + 1});
  }
}

Result<void> QueueJournal::given(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
  next_lease_ = LeaseNumber{lease.value + 1};
  return write({0, Kind::given, lease.value, index.value, owner.value});
}

Result<void> QueueJournal::done(LeaseNumber lease, QueueOwner owner) {
  return write({0, Kind::done, lease.value, 0, owner.value});
}

Result<void> QueueJournal::returned(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
  return write({0, Kind::returned, lease.value, index.value, owner.value});
}

Result<void> QueueJournal::set_aside(LeaseNumber lease, QueueOwner owner) {
  return write({0, Kind::done, lease.value, JournalRecord::kSetAside, owner.value});
}

Result<void> QueueJournal::write(const JournalRecord& record) {
  const JournalRecord sealed = record.sealed();
  if (writer_ == nullptr) return file_->write(sealed.bytes());
  const auto bytes = sealed.bytes();
  writer_->put(file_, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return {};
}

std::function<Result<BegunJournal>()> QueueJournal::beginning(
    Epoch epoch, const Fingerprint& fingerprint) const {
  const std::array records = {
      JournalRecord{0, Kind::plan, fingerprint.data, fingerprint.settings, fingerprint.seed}
          .sealed(),
      JournalRecord{0, Kind::epoch, next_lease_.value, epoch.value, 0}.sealed()};
  return [path = path_, records, sync = sync_] { return begin_anew(path, records, sync); };
}

void QueueJournal::take_up(BegunJournal begun) {
  std::shared_ptr<KeptFile> before = std::exchange(file_, std::move(begun.file));
  if (writer_ != nullptr) writer_->close(std::move(before));
  fingerprint_ = begun.fingerprint;
  begun_ = true;
}

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& path, const std::string& feed) {
  auto file = KeptFile::open("ledger", path);
  if (!file) return file.error();
  if (auto room = (*file)->check_room(); !room) return room.error();
  const auto cut_off = is_cut_off(**file);
  if (!cut_off) return cut_off.error();
  std::unique_ptr<Ledger> ledger(new Ledger(utf8(feed), std::move(*file)));
  if (*cut_off) {
    if (auto ended = ledger->write_line("\n"); !ended) return ended.error();
  }
  return ledger;
}

Result<void> Ledger::delivered(const Entry& entry, const EpochPlan& plan) {
  plan.rows(entry.id.index, rows_);
  json::array ordinals(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) ordinals[i] = rows_[i].ordinal;
  return write_object({{"event", "delivered"},
                       {"feed", feed_},
                       {"client", token_text(entry.client)},
                       {"pid", entry.client.pid},
                       {"subscription", entry.subscription.value},
                       {"lease", entry.lease.value},
                       {"epoch", entry.id.epoch.value},
                       {"step", entry.id.index.value / plan.world()},
                       {"index", entry.id.index.value},
                       {"rehearsal", entry.rehearsal},
                       {"ordinals", std::move(ordinals)}});
}

Result<void> Ledger::ended(const ClientInfo& client, LeaseNumber lease, std::string_view what) {
  return write_object({{"event", what},
                       {"feed", feed_},
                       {"client", token_text(client)},
                       {"pid", client.pid},
                       {"lease", lease.value}});
}

Result<void> Ledger::write_object(const json::object& object) const {
  return write_line(json::serialize(object) + "\n");
}

/// By one write(): lines of several daemons in one file do not mix.
Result<void> Ledger::write_line(const std::string& line) const {
  if (writer_ != nullptr) {
    writer_->put(file_, line);
    return {};
  }
  return file_->write(std::as_bytes(std::span(line)));
}

}  // namespace batchwright
