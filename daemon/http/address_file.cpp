#include "daemon/http/address_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace batchwright {

Result<std::unique_ptr<AddressFile>> AddressFile::write(const std::string& path,
                                                        const std::vector<std::string>& addresses,
                                                        const SocketAccess& access) {
  const std::string fresh = path + ".new";
  const auto failed = [&] {
    const int code = errno;
    ::unlink(fresh.c_str());
    return Error{ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(code))};
  };
  ::unlink(fresh.c_str());
  const std::string text = fmt::format("{}\n", fmt::join(addresses, "\n"));
  {
    // Nobody else's until it is whole, and has its access.
    const Descriptor out(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out) return failed();
    const ssize_t written = ::write(out.get(), text.data(), text.size());
    if (written >= 0 && static_cast<std::size_t>(written) < text.size()) errno = ENOSPC;
    if (written != static_cast<ssize_t>(text.size())) return failed();
  }
  if (auto opened = set_access(fresh, access); !opened) {
    ::unlink(fresh.c_str());
    return opened.error();
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return failed();
  return std::unique_ptr<AddressFile>(new AddressFile(path));
}

}  // namespace batchwright
