#include "daemon/delivery/feed/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace batchwright {
namespace {

/// How often a file is opened again because another took its place meanwhile. Another daemon does
/// that once an epoch, so a second time is rare already.
constexpr int kMostTries = 16;

/// Some records of a journal, and some lines of a ledger.
constexpr std::uint64_t kRoomBytes = 64 * 1024;

}  // namespace

Error KeptFile::failed(const char* doing) const {
  return {ErrorCode::io_error, fmt::format("{}: {}: {}", name(), doing, reason_with_limit(errno))};
}

Result<std::unique_ptr<KeptFile>> KeptFile::open(const std::string& what, const std::string& path) {
  Descriptor opened(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  std::unique_ptr<KeptFile> file(new KeptFile(what, path, std::move(opened)));
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

}  // namespace batchwright
