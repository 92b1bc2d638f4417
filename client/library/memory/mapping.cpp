#include "client/library/memory/mapping.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace batchwright {
namespace {

Error malformed(const std::string& what) {
  return {ErrorCode::malformed_message, fmt::format("the daemon's arena {}", what)};
}

}  // namespace

Result<std::shared_ptr<const Mapping>> Mapping::map(Descriptor arena, std::uint64_t bytes) {
  struct stat status {};
  if (fstat(arena.get(), &status) != 0) {
    return Error{ErrorCode::io_error, fmt::format("fstat of the arena: {}", std::strerror(errno))};
  }
  if (bytes == 0 || static_cast<std::uint64_t>(status.st_size) < bytes) {
    return malformed(fmt::format("has {} bytes and was announced with {}", status.st_size, bytes));
  }
  // Without the seal a daemon that shrinks it would kill its clients by SIGBUS.
  const int seals = fcntl(arena.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return malformed("is not sealed against shrinking");
  // All of the file, which is longer than the arena where it lies in huge pages: of these no part
  // can be unmapped.
  const auto whole = static_cast<std::size_t>(status.st_size);
  void* start = mmap(nullptr, whole, PROT_READ, MAP_SHARED | MAP_POPULATE, arena.get(), 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::io_error,
                 fmt::format("mmap of an arena of {} bytes: {}", whole, std::strerror(errno))};
  }
  return std::make_shared<const Mapping>(std::span(static_cast<const std::byte*>(start), whole),
                                         std::move(arena));
}

Mapping::~Mapping() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

Result<std::span<const std::byte>> Mapping::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return malformed(fmt::format("has {} bytes; a batch was announced at {} with {}", bytes_.size(),
                                 offset, size));
  }
  return bytes_.subspan(offset, size);
}

void Mapping::keep(std::shared_ptr<const void> beside) const {
  const MutexLock lock(mutex_);
  beside_.push_back(std::move(beside));
}

void Mapping::let_go(const std::shared_ptr<const void>& beside) const {
  const MutexLock lock(mutex_);
  std::erase(beside_, beside);
}

}  // namespace batchwright
