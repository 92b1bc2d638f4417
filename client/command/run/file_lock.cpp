#include "client/command/run/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace batchwright {
namespace {

Error refused(const std::filesystem::path& file, const char* call) {
  return {ErrorCode::io_error,
          fmt::format("{}: {}: {}", file.string(), call, std::strerror(errno))};
}

/// Whether the path still leads to the file that is open: its last user may have removed it.
bool is_there(const std::filesystem::path& file, int descriptor) {
  struct stat open = {};
  struct stat there = {};
  return ::fstat(descriptor, &open) == 0 && ::stat(file.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

}  // namespace

Result<std::optional<FileLock>> FileLock::take(const std::filesystem::path& file, Kind kind,
                                               bool wait) {
  for (;;) {
    Descriptor descriptor(
        ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!descriptor) {
      const bool no_folder = errno == ENOENT;
      Error error = refused(file, "open");
      if (no_folder) error.code = ErrorCode::not_found;
      return error;
    }
    const int how = (kind == Kind::shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB);
    if (::flock(descriptor.get(), how) != 0) {
      if (errno == EWOULDBLOCK) return std::optional<FileLock>();
      if (errno == EINTR) continue;
      return refused(file, "flock");
    }
    if (is_there(file, descriptor.get())) {
      return std::optional<FileLock>(FileLock(file, std::move(descriptor)));
    }
  }
}

Result<void> FileLock::write(std::string_view text) const {
  const bool written =
      ::ftruncate(descriptor_.get(), 0) == 0 &&
      ::pwrite(descriptor_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) return refused(file_, "write");
  return {};
}

void FileLock::remove() const { ::unlink(file_.c_str()); }

std::string read_small_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace batchwright
