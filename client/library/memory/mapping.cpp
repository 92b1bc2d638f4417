#include "client/library/memory/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace batchwright {
namespace {

Error malformed(const std::string& what) {
  return {ErrorCode::malformed_message, "the daemon's arena " + what};
}

}  // namespace

Result<std::shared_ptr<const Mapping>> Mapping::map(Descriptor arena, std::uint64_t bytes) {
  struct stat status {};
  if (fstat(arena.get(), &status) != 0) {
    return Error{ErrorCode::io_error, std::string("fstat of the arena: ") + std::strerror(errno)};
  }
  if (bytes == 0 || static_cast<std::uint64_t>(status.st_size) < bytes) {
    return malformed("has " + std::to_string(status.st_size) + " bytes and was announced with " +
                     std::to_string(bytes));
  }
  // Without the seal a daemon that shrinks it would kill its clients by SIGBUS.
  const int seals = fcntl(arena.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return malformed("is not sealed against shrinking");
  void* start = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, arena.get(), 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::io_error, "mmap of an arena of " + std::to_string(bytes) +
                                          " bytes: " + std::strerror(errno)};
  }
  return std::make_shared<const Mapping>(std::span(static_cast<const std::byte*>(start), bytes),
                                         std::move(arena));
}

Mapping::~Mapping() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

Result<std::span<const std::byte>> Mapping::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return malformed("has " + std::to_string(bytes_.size()) + " bytes; a batch was announced at " +
                     std::to_string(offset) + " with " + std::to_string(size));
  }
  return bytes_.subspan(offset, size);
}

}  // namespace batchwright
