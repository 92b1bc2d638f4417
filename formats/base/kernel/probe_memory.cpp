#include "formats/base/kernel/probe_memory.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace batchwright {

Result<void> probe_memory(std::uint64_t count, std::size_t bytes, std::string_view what) {
  if (count == 0) return {};
  const bool countable = count <= std::numeric_limits<std::size_t>::max() / bytes;
  void* const given = countable ? ::mmap(nullptr, static_cast<std::size_t>(count) * bytes,
                                         PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : MAP_FAILED;
  if (given == MAP_FAILED) {
    return Error{ErrorCode::busy,
                 fmt::format("no memory for {} of {} sequences, which takes {} bytes each: {}",
                             what, count, bytes, std::strerror(countable ? errno : ENOMEM))};
  }
  ::munmap(given, static_cast<std::size_t>(count) * bytes);
  return {};
}

void give_heap_back() {
  // A sanitizer has an allocator of its own, and glibc's is not set up for several threads at once.
#if defined(__GLIBC__) && !defined(BATCHWRIGHT_SANITIZED)
  ::malloc_trim(0);
#endif
}

}  // namespace batchwright
