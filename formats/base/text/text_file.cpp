#include "formats/base/text/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/base/kernel/descriptor.h"

namespace batchwright {
namespace {

/// Read at once: files of /proc do not say how long they are.
constexpr std::size_t kPiece = std::size_t{1} << 14;

Error cannot_read(const std::filesystem::path& path, int reason) {
  return {ErrorCode::io_error,
          fmt::format("{}: cannot be read: {}", path.string(), std::strerror(reason))};
}

}  // namespace

Result<std::string> file_text(const std::filesystem::path& path, std::size_t most) {
  // To open a pipe would wait for a writer; to read one waits only while there is one.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_LARGEFILE;
  const Descriptor file(open(path.c_str(), kFlags | O_NONBLOCK));
  if (file.get() < 0) return cannot_read(path, errno);
  static_cast<void>(fcntl(file.get(), F_SETFL, kFlags));
  std::string text;
  std::size_t length = 0;
  while (length < most) {
    text.resize(length + std::min(kPiece, most - length));
    const ssize_t got = read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

Result<void> put_file(const std::filesystem::path& path, std::string_view text, mode_t mode,
                      const std::function<Result<void>(const std::string&)>& prepare) {
  const std::string fresh = path.string() + ".new";
  const auto failed = [&] {
    const int code = errno;
    unlink(fresh.c_str());
    return Error{ErrorCode::io_error, fmt::format("{}: {}", path.string(), std::strerror(code))};
  };
  unlink(fresh.c_str());
  {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const Descriptor file(open(fresh.c_str(), kFlags, mode));
    if (!file) return failed();
    while (!text.empty()) {
      const ssize_t written = write(file.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed();
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (prepare) {
    if (auto prepared = prepare(fresh); !prepared) {
      unlink(fresh.c_str());
      return prepared;
    }
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace batchwright
