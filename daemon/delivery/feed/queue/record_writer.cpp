#include "daemon/delivery/feed/queue/record_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

namespace batchwright {
namespace {

/// How often a file is opened again because another took its place meanwhile. Another daemon does
/// that once an epoch, so a second time is rare already.
constexpr int kMostTries = 16;

/// Some records of a journal, and some lines of a ledger.
constexpr std::uint64_t kRoomBytes = 64 * 1024;

}  // namespace

Error KeptFile::failed(const char* doing) const {
  return {ErrorCode::io_error, fmt::format("{}: {}: {}", name_, doing, reason_with_limit(errno))};
}

Result<std::unique_ptr<KeptFile>> KeptFile::open(const std::string& what, const std::string& path) {
  Descriptor opened(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  std::unique_ptr<KeptFile> file(new KeptFile(what + " " + path, std::move(opened)));
  if (!file->file_) return file->failed("open");
  return file;
}

/// Between open() and flock() the file that was opened may have been replaced: its lock, which is
/// free then, locks nothing.
Result<std::unique_ptr<KeptFile>> KeptFile::open_locked(const std::string& what,
                                                        const std::string& path) {
  for (int i = 0; i < kMostTries; ++i) {
    auto file = open(what, path);
    if (!file) return file.error();
    if (::flock((*file)->descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return (*file)->failed("lock");
      break;
    }
    if ((*file)->lies_at(path)) return std::move(*file);
  }
  return Error{ErrorCode::busy, fmt::format("{} {} is in use by another daemon", what, path)};
}

bool KeptFile::lies_at(const std::string& path) const {
  struct stat mine {};
  struct stat there {};
  return ::fstat(descriptor(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/// A file system that fills up takes the part for which it has room, and says why it takes no more
/// only when it is asked again.
Result<void> KeptFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::size_t> KeptFile::read(std::span<std::byte> into, std::uint64_t offset) const {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t more = ::pread(descriptor(), into.data() + got, into.size() - got,
                                 static_cast<off_t>(offset + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return failed("read");
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  return got;
}

Result<std::uint64_t> KeptFile::size() const {
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0) return failed("stat");
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> KeptFile::check_room() const {
  const auto end = size();
  if (!end) return end.error();
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur != RLIM_INFINITY && *end + kRoomBytes > limit.rlim_cur) {
    errno = EFBIG;
    return failed("write");
  }
  int done = 0;
  do {
    done = ::fallocate(descriptor(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(*end),
                       static_cast<off_t>(kRoomBytes));
  } while (done != 0 && errno == EINTR);
  // Any other error is that of a file system that reserves nothing: the first write will tell.
  if (done != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) return failed("write");
  return {};
}

Result<void> KeptFile::cut(std::uint64_t size) {
  if (::ftruncate(descriptor(), static_cast<off_t>(size)) != 0) return failed("truncate");
  return {};
}

/// What the loop and the thread of the files share.
struct RecordWriter::Queue {
  struct Entry {
    std::shared_ptr<KeptFile> file;
    std::string record;  // or the name of `work`
    std::function<void(const std::optional<Error>&)> work;
  };

  /// True where it joins what is to be written already. Work stands alone, so that the records
  /// before it are told of before it begins.
  bool add(Entry entry) {
    const MutexLock lock(mutex);
    const bool joins = !entry.work && !pending.empty() && !pending.back().front().work;
    if (!joins) pending.emplace_back();
    pending.back().push_back(std::move(entry));
    return joins;
  }

  /// Writes all that has gathered, or does one piece of work. On the thread of the files.
  Progress write() {
    std::vector<Entry> entries;
    {
      const MutexLock lock(mutex);
      entries = std::move(pending.front());
      pending.pop_front();
    }
    for (auto entry = entries.begin(); entry != entries.end();) entry = write(entry, entries.end());
    const MutexLock lock(mutex);
    current.reset();
    return {written, failure};
  }

  /// Records of one file that follow each other, or one piece of work.
  std::vector<Entry>::iterator write(std::vector<Entry>::iterator first,
                                     std::vector<Entry>::iterator end) {
    note_current(*first);
    if (first->work) {
      first->work(failure);
      first->work = nullptr;
      first->file = nullptr;  // closed here, if it was the last that holds it
      return first + 1;
    }
    const auto next = std::find_if(first, end, [first](const Entry& entry) {
      return entry.work || entry.file != first->file;
    });
    if (failure) return next;
    // A lack of memory is a failure like any other: nothing is written then.
    const auto done = caught(ErrorCode::busy, "", [first, next]() -> Result<void> {
      for (auto entry = first + 1; entry != next; ++entry) first->record += entry->record;
      return first->file->write(std::as_bytes(std::span(first->record)));
    });
    if (done) {
      written += static_cast<std::uint64_t>(next - first);
    } else {
      failure = done.error();
    }
    return next;
  }

  /// For lack of memory nobody is told of it.
  void note_current(const Entry& entry) {
    static_cast<void>(caught(ErrorCode::busy, "", [this, &entry]() -> Result<void> {
      AtWork now{entry.file ? entry.file->name() : entry.record, Time::clock::now()};
      const MutexLock lock(mutex);
      current = std::move(now);
      return {};
    }));
  }

  Mutex mutex;
  std::deque<std::vector<Entry>> pending GUARDED_BY(mutex);  // one for each write() to come
  std::optional<AtWork> current GUARDED_BY(mutex);
  std::uint64_t written = 0;     // of the thread of the files alone
  std::optional<Error> failure;  // the same
};

RecordWriter::RecordWriter(Elsewhere elsewhere)
    : elsewhere_(std::move(elsewhere)), queue_(std::make_shared<Queue>()) {}

void RecordWriter::put(const std::shared_ptr<KeptFile>& file, std::string record) {
  ++last_;
  push(file, std::move(record), nullptr);
}

void RecordWriter::run(const std::string& name,
                       std::function<void(const std::optional<Error>&)> work) {
  push(nullptr, name, std::move(work));
}

void RecordWriter::close(std::shared_ptr<KeptFile> file) {
  if (file) push(std::move(file), {}, [](const auto&) {});
}

void RecordWriter::push(std::shared_ptr<KeptFile> file, std::string record,
                        std::function<void(const std::optional<Error>&)> work) {
  if (queue_->add({std::move(file), std::move(record), std::move(work)})) return;
  elsewhere_([queue = queue_] { return queue->write(); });
}

std::optional<RecordWriter::AtWork> RecordWriter::at_work() const {
  const MutexLock lock(queue_->mutex);
  return queue_->current;
}

bool RecordWriter::told(const Progress& progress) {
  written_ = std::max(written_, progress.written);
  while (!held_.empty() && has_written(held_.front().record)) {
    const auto send = std::move(held_.front().send);
    held_.pop_front();
    send();
  }
  return progress.failure && !std::exchange(knows_failure_, true);
}

std::optional<Error> RecordWriter::untold() const {
  return knows_failure_ ? std::optional<Error>() : queue_->failure;
}

bool RecordWriter::lets_pass(const SubscriptionKey& to, std::uint64_t record) const {
  if (!holds_) return true;
  return has_written(record) && std::none_of(held_.begin(), held_.end(),
                                             [&to](const Held& held) { return held.to == to; });
}

/// One that only keeps its place in its subscription's order stands behind one that waits for a
/// record, so records never go down from one to the next where that matters.
void RecordWriter::hold(const SubscriptionKey& to, std::uint64_t record, std::function<void()> send,
                        std::function<void()> drop) {
  held_.push_back({to, record, std::move(send), std::move(drop)});
}

void RecordWriter::stop_holding() {
  holds_ = false;
  for (const Held& held : std::exchange(held_, {})) {
    if (held.drop) held.drop();
  }
}

}  // namespace batchwright
