#include "daemon/delivery/feed/queue/journal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"

namespace batchwright {
namespace {

constexpr std::uint32_t kMagic = 0x31515742;  // "BWQ1", little-endian

enum class Kind : std::uint32_t { plan = kMagic, epoch = 1, given = 2, done = 3 };

/// Records that are read at once: 1 MiB of them.
constexpr std::size_t kRecordsRead = 32768;

/// One record, as it lies in the file.
struct Record {
  std::uint32_t crc = 0;  ///< CRC-32C of all that follows.
  Kind kind = Kind::epoch;
  std::uint64_t first = 0;   ///< plan: data; epoch: next free lease; else the lease.
  std::uint64_t second = 0;  ///< plan: settings; epoch: its number; given: the batch's index.
  std::uint64_t third = 0;   ///< plan: seed; given, done: the owner.
};
static_assert(sizeof(Record) == 32);

std::span<const std::byte> bytes_of(const Record& record) {
  return std::as_bytes(std::span(&record, 1));
}

std::uint32_t crc_of(const Record& record) {
  return crc32c(bytes_of(record).subspan(sizeof record.crc));
}

Record sealed(Record record) {
  record.crc = crc_of(record);
  return record;
}

constexpr const char* kWhat = "journal";

/// Waits for the disk. A new file takes the old one's place in one step, so that there is a whole
/// one at any moment. It is locked before it is emptied: another daemon's may lie there.
Result<BegunJournal> begin_anew(const std::string& path, std::span<const Record> records,
                                const QueueJournal::Sync& sync) {
  const std::string fresh = path + ".new";
  auto file = KeptFile::open_locked(kWhat, fresh);
  if (!file) return file.error();
  if (auto emptied = (*file)->cut(0); !emptied) return emptied.error();
  if (auto written = (*file)->write(std::as_bytes(records)); !written) return written.error();
  if (sync((*file)->descriptor()) != 0) return (*file)->failed("sync");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return (*file)->failed("rename");
  return BegunJournal{std::move(*file), {records[0].first, records[0].second, records[0].third}};
}

/// What one whole record says of the queue.
void take(const Record& record, WorkQueue& queue) {
  switch (record.kind) {
    case Kind::plan: break;
    case Kind::epoch: queue.begin(Epoch{record.second}); break;
    case Kind::given:
      queue.give(LeaseNumber{record.first}, BatchIndex{record.second}, QueueOwner{record.third});
      break;
    case Kind::done: queue.done(LeaseNumber{record.first}, QueueOwner{record.third}); break;
  }
}

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
  queue.keep_all(WorkQueue::Time::max());
  return journal;
}

/// Records up to the first that is not whole: there the daemon, or the machine, died.
Result<void> QueueJournal::read(WorkQueue& queue) {
  std::vector<Record> records(kRecordsRead);
  std::uint64_t end = 0;
  std::size_t whole = kRecordsRead;
  while (whole == kRecordsRead) {
    const auto got = file_->read(std::as_writable_bytes(std::span(records)), end);
    if (!got) return got.error();
    const std::size_t there = *got / sizeof(Record);
    for (whole = 0; whole < there; ++whole) {
      const Record& record = records[whole];
      if (record.crc != crc_of(record)) break;
      take(record, queue);
      if (record.kind == Kind::plan) fingerprint_ = {record.first, record.second, record.third};
      if (record.kind == Kind::epoch) next_lease_ = LeaseNumber{record.first};
      if (record.kind == Kind::given) {
        next_lease_ = std::max(next_lease_, LeaseNumber{record.first + 1});
      }
      begun_ = begun_ || record.kind == Kind::epoch;
    }
    end += whole * sizeof(Record);
  }
  const auto size = file_->size();
  if (!size) return size.error();
  if (!begun_ && *size > 2 * sizeof(Record)) {
    return Error{ErrorCode::corrupt_record, fmt::format("{} is not the journal of a queue", path_)};
  }
  return *size == end ? Result<void>{} : file_->cut(end);
}

Result<void> QueueJournal::given(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
  next_lease_ = LeaseNumber{lease.value + 1};
  return file_->write(bytes_of(sealed({0, Kind::given, lease.value, index.value, owner.value})));
}

Result<void> QueueJournal::done(LeaseNumber lease, QueueOwner owner) {
  return file_->write(bytes_of(sealed({0, Kind::done, lease.value, 0, owner.value})));
}

std::function<Result<BegunJournal>()> QueueJournal::beginning(
    Epoch epoch, const Fingerprint& fingerprint) const {
  const std::array records = {
      sealed({0, Kind::plan, fingerprint.data, fingerprint.settings, fingerprint.seed}),
      sealed({0, Kind::epoch, next_lease_.value, epoch.value, 0})};
  return [path = path_, records, sync = sync_] { return begin_anew(path, records, sync); };
}

void QueueJournal::take_up(BegunJournal begun) {
  file_ = std::move(begun.file);
  fingerprint_ = begun.fingerprint;
  begun_ = true;
}

}  // namespace batchwright
