#include "daemon/startup_memory.h"

#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "formats/formats.h"

namespace batchwright {
namespace {

/// Heap, stacks and relocated data of a daemon that serves one small feed. The page cache, with the
/// programs' code and the datasets in it, gives way.
constexpr std::uint64_t kOwnBytes = (kFewThreads ? 3ULL : 10ULL) << 20;

/// Unmaps the pages of what an object has that nothing can write to: those alone are in its file as
/// they are in memory. What the loader has relocated lies in segments that were writable.
int let_go(dl_phdr_info* object, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // Refused for the kernel's own object, which takes no memory of this process.
    static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
  }
  return 0;
}

}  // namespace

std::string memory_shortage(std::uint64_t feeds, const MemoryRoom& room) {
  if (room.most >= kOwnBytes && feeds <= room.most - kOwnBytes) return "";
  const std::string more = feeds == 0 ? "" : fmt::format(" and its feeds {}", in_mib(feeds));
  return fmt::format(
      "the control group, or the machine, allows {} of memory, and the daemon needs about {}{}: "
      "the kernel may kill it; raise the limit (memory.max, MemoryMax=){}",
      in_mib(room.most), in_mib(kOwnBytes), more,
      feeds == 0 ? "" : ", or lower daemon.memory or the feeds' slots");
}

void let_start_memory_go() {
  give_heap_back();
  ::dl_iterate_phdr(let_go, nullptr);
}

}  // namespace batchwright
