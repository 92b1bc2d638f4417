#include "client/library/produce/area.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace batchwright {

Result<std::shared_ptr<const Area>> Area::map(const Descriptor& area, std::uint64_t bytes) {
  struct stat status {};
  if (::fstat(area.get(), &status) != 0) {
    return Error{ErrorCode::io_error, fmt::format("fstat of the area: {}", std::strerror(errno))};
  }
  if (bytes == 0 || static_cast<std::uint64_t>(status.st_size) < bytes) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("the daemon's area has {} bytes and was announced with {}",
                             status.st_size, bytes)};
  }
  // Without the seal a daemon that shrinks it would kill its producers by SIGBUS.
  const int seals = ::fcntl(area.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error{ErrorCode::malformed_message, "the daemon's area is not sealed against shrinking"};
  }
  const auto size = static_cast<std::size_t>(bytes);
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, area.get(), 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::io_error,
                 fmt::format("mmap of an area of {} bytes: {}", size, std::strerror(errno))};
  }
  return std::make_shared<const Area>(std::span(static_cast<std::byte*>(start), size));
}

Area::~Area() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace batchwright
