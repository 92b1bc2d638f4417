#include "formats/base/kernel/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace batchwright {
namespace {

Error lock_error(const std::filesystem::path& file, const char* call) {
  const bool no_locks = errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS;
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found
                         : no_locks      ? ErrorCode::unsupported
                                         : ErrorCode::io_error;
  return {code, fmt::format("{}: {}: {}", file.string(), call, std::strerror(errno))};
}

Descriptor open_lock(const std::filesystem::path& file) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  // First without O_CREAT: the kernel may refuse that for a file of another user in /tmp, which
  // root may open.
  Descriptor there(::open(file.c_str(), kFlags));
  if (there || errno != ENOENT) return there;
  return Descriptor(::open(file.c_str(), kFlags | O_CREAT, S_IRUSR | S_IWUSR));
}

}  // namespace

Result<std::optional<FileLock>> FileLock::take(const std::filesystem::path& file, Kind kind) {
  for (;;) {
    FileLock lock(file, open_lock(file));
    if (!lock.descriptor_) return lock_error(file, "open");
    if (::flock(lock.descriptor_.get(), (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) !=
        0) {
      if (errno == EWOULDBLOCK) return std::optional<FileLock>();
      if (errno == EINTR) continue;
      return lock_error(file, "flock");
    }
    // Its last user may have removed it between the two calls.
    if (lock.is_there()) return std::optional<FileLock>(std::move(lock));
  }
}

Result<void> FileLock::write(std::string_view text) const {
  const bool written =
      ::ftruncate(descriptor_.get(), 0) == 0 &&
      ::pwrite(descriptor_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) return lock_error(file_, "write");
  return {};
}

bool FileLock::is_there() const {
  struct stat open = {};
  struct stat there = {};
  return ::fstat(descriptor_.get(), &open) == 0 && ::lstat(file_.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

void FileLock::remove() const {
  if (is_there()) ::unlink(file_.c_str());
}

}  // namespace batchwright
