#include "storage/dataset/lmdb/map_pages.h"

#include <fcntl.h>
#include <linux/mman.h>  // a libc may lack MADV_POPULATE_READ
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "storage/dataset/lmdb/fault_guard.h"

namespace batchwright {
namespace {

/// The kernel cuts a longer request to what the disk takes at once, which is no less than this
/// where nothing is tuned (read_ahead_kb), and forgets the rest.
constexpr std::size_t kRequestBytes = 128 << 10;

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The pages that hold the bytes: madvise() takes whole pages only.
MapBytes whole_pages(MapBytes bytes) {
  const auto before = reinterpret_cast<std::uintptr_t>(bytes.data()) % page_bytes();
  const std::size_t size = (before + bytes.size() + page_bytes() - 1) / page_bytes() * page_bytes();
  return {bytes.data() - before, size};
}

int advise(MapBytes pages, int advice) {
  return madvise(const_cast<std::byte*>(pages.data()), pages.size(), advice);
}

void touch(MapBytes pages) {
  for (std::size_t at = 0; at < pages.size(); at += page_bytes()) {
    // volatile: the compiler would leave out a read whose value is not used.
    static_cast<void>(*static_cast<const volatile std::byte*>(&pages[at]));
  }
}

}  // namespace

void prefetch(MapBytes bytes) {
  if (bytes.empty()) return;
  const MapBytes pages = whole_pages(bytes);
  for (std::size_t at = 0; at < pages.size(); at += kRequestBytes) {
    // A hint: when it fails, the page is read when it is needed.
    static_cast<void>(
        advise(pages.subspan(at, std::min(kRequestBytes, pages.size() - at)), MADV_WILLNEED));
  }
}

void bring_in(MapBytes bytes) {
  if (bytes.empty()) return;
  const MapBytes pages = whole_pages(bytes);
  // EINVAL: a kernel before 5.14. All other errors are met again where the bytes are read.
  if (advise(pages, MADV_POPULATE_READ) == 0 || errno != EINVAL) return;
  static_cast<void>(guarded([&] { touch(pages); }));
}

void let_go(MapBytes bytes, const MapOrigin& file) {
  if (bytes.empty()) return;
  const MapBytes pages = whole_pages(bytes);
  // First out of this process's map: the kernel keeps what any process has mapped.
  static_cast<void>(advise(pages, MADV_DONTNEED));
  static_cast<void>(posix_fadvise(file.descriptor, pages.data() - file.begin,
                                  static_cast<off_t>(pages.size()), POSIX_FADV_DONTNEED));
}

}  // namespace batchwright
