#include "daemon/delivery/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "daemon/assembly/assembly.h"

namespace batchwright {
namespace {

constexpr std::uint32_t kMagic = 0x31515742;  // "BWQ1", little-endian

enum class Kind : std::uint32_t { plan = kMagic, epoch = 1, given = 2, done = 3 };

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

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Error QueueJournal::failed(const char* doing) const {
  return {ErrorCode::io_error, "journal " + path_ + ": " + doing + ": " + std::strerror(errno)};
}

QueueJournal::~QueueJournal() { ::close(file_); }

Result<std::unique_ptr<QueueJournal>> QueueJournal::open(const std::string& path,
                                                         const Fingerprint& fingerprint,
                                                         bool data_may_grow, WorkQueue& queue) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) {
    return Error{ErrorCode::io_error, "journal " + path + ": open: " + std::strerror(errno)};
  }
  std::unique_ptr<QueueJournal> journal(new QueueJournal(path, file));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::busy, "journal " + path + " is in use by another daemon"};
  }
  if (auto read = journal->read(queue); !read) return read.error();
  if (!journal->begun_) {
    queue.begin(Epoch{0});
    if (auto begun = journal->begin(Epoch{0}, fingerprint); !begun) return begun.error();
    return journal;
  }
  Fingerprint expected = journal->fingerprint_;
  if (data_may_grow) expected.data = fingerprint.data;
  if (expected != fingerprint) {
    return Error{ErrorCode::fingerprint_mismatch,
                 "journal " + path + " is of another plan: " +
                     describe_difference(expected, fingerprint) + " changed (expected " +
                     to_string(journal->fingerprint_) + ", now " + to_string(fingerprint) +
                     "); change it back, or remove the file to begin the queue anew"};
  }
  queue.keep_all(WorkQueue::Time::max());
  return journal;
}

/// Records up to the first that is not whole: there the daemon, or the machine, died.
Result<void> QueueJournal::read(WorkQueue& queue) {
  Record record;
  off_t end = 0;
  for (;; end += off_t{sizeof record}) {
    const ssize_t got = ::pread(file_, &record, sizeof record, end);
    if (got < 0) return failed("read");
    if (got != ssize_t{sizeof record} || record.crc != crc_of(record)) break;
    switch (record.kind) {
      case Kind::plan: fingerprint_ = {record.first, record.second, record.third}; break;
      case Kind::epoch:
        begun_ = true;
        next_lease_ = record.first;
        queue.begin(Epoch{record.second});
        break;
      case Kind::given:
        next_lease_ = std::max(next_lease_, record.first + 1);
        queue.give(record.first, BatchIndex{record.second}, QueueOwner{record.third});
        break;
      case Kind::done: queue.done(record.first, QueueOwner{record.third}); break;
    }
  }
  const off_t size = ::lseek(file_, 0, SEEK_END);
  if (!begun_ && size > off_t{2 * sizeof record}) {
    return Error{ErrorCode::corrupt_record, path_ + " is no journal of a queue"};
  }
  if (size != end && ::ftruncate(file_, end) != 0) return failed("truncate");
  return {};
}

Result<void> QueueJournal::given(std::uint64_t lease, BatchIndex index, QueueOwner owner) {
  next_lease_ = lease + 1;
  const Record record = sealed({0, Kind::given, lease, index.value, owner.value});
  return write_all(file_, bytes_of(record)) ? Result<void>{} : failed("write");
}

Result<void> QueueJournal::done(std::uint64_t lease, QueueOwner owner) {
  const Record record = sealed({0, Kind::done, lease, 0, owner.value});
  return write_all(file_, bytes_of(record)) ? Result<void>{} : failed("write");
}

/// A new file takes the old one's place in one step, so that there is a whole one at any moment.
Result<void> QueueJournal::begin(Epoch epoch, const Fingerprint& fingerprint) {
  const std::array records = {
      sealed({0, Kind::plan, fingerprint.data, fingerprint.settings, fingerprint.seed}),
      sealed({0, Kind::epoch, next_lease_, epoch.value, 0})};
  const std::string fresh = path_ + ".new";
  const int file = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) return failed("open");
  const bool written = ::flock(file, LOCK_EX | LOCK_NB) == 0 &&
                       write_all(file, std::as_bytes(std::span(records))) &&
                       ::fdatasync(file) == 0 && ::rename(fresh.c_str(), path_.c_str()) == 0;
  if (!written) {
    const Error error = failed("begin an epoch");
    ::close(file);
    return error;
  }
  ::close(std::exchange(file_, file));
  fingerprint_ = fingerprint;
  begun_ = true;
  return {};
}

}  // namespace batchwright
