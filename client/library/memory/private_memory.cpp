#include "client/library/memory/private_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace batchwright {
namespace {

struct Unmap {
  std::size_t size;
  void operator()(std::byte* start) const noexcept { munmap(start, size); }
};

}  // namespace

Result<Payload> private_memory(const Mapping& arena, std::uint64_t offset, std::uint64_t size) {
  // A mapping begins with a page; a batch begins anywhere in its slot.
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  // Not populated: for a mapping that may be written to, that would copy every page.
  void* start = mmap(nullptr, before + size, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                     arena.descriptor(), static_cast<off_t>(offset - before));
  if (start == MAP_FAILED) {
    const ErrorCode code = errno == ENOMEM ? ErrorCode::does_not_fit : ErrorCode::io_error;
    return Error{code, fmt::format("mmap of a batch of {} bytes that may be written to: {}", size,
                                   std::strerror(errno))};
  }
  std::shared_ptr<std::byte> keeper(static_cast<std::byte*>(start), Unmap{before + size});
  const std::span<const std::byte> bytes(keeper.get() + before, size);
  return Payload{std::move(keeper), bytes};
}

}  // namespace batchwright
