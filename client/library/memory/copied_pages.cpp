#include "client/library/memory/copied_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace batchwright {
namespace {

// The kernel's Documentation/admin-guide/mm/pagemap.rst and userfaultfd.rst. Debian 12's headers
// are older than these numbers, which are part of the kernel's ABI.
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;  // of an entry of pagemap
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kWpUnpopulated = std::uint64_t{1} << 13;  // UFFD_FEATURE_WP_UNPOPULATED
constexpr std::uint64_t kWpAsync = std::uint64_t{1} << 15;        // UFFD_FEATURE_WP_ASYNC
constexpr std::uint64_t kWritten = std::uint64_t{1} << 1;         // PAGE_IS_WRITTEN
constexpr std::uint64_t kMarkAgain = 3;  // PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC

constexpr std::size_t kRegionsAtOnce = 64;  // on the stack, as are the entries
constexpr std::size_t kEntriesAtOnce = 512;

/// struct page_region and struct pm_scan_arg.
struct Region {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanArguments {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t region_count;
  std::uint64_t max_pages;
  std::uint64_t inverted;
  std::uint64_t all_of;
  std::uint64_t any_of;
  std::uint64_t told;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanArguments);

bool is_copy(std::uint64_t entry) {
  return (entry & (kPresent | kSwapped)) != 0 && (entry & kOfFile) == 0;
}

/// Empty where the kernel, or what it was told of this process, does not allow it.
Descriptor marks_over(std::span<const std::byte> mapping) {
  Descriptor marks(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  if (!marks) return {};
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWpAsync | kWpUnpopulated;
  if (ioctl(marks.get(), UFFDIO_API, &api) != 0) return {};
  uffdio_register range{};
  range.range.start = reinterpret_cast<std::uintptr_t>(mapping.data());
  range.range.len = (mapping.size() + page_bytes() - 1) / page_bytes() * page_bytes();
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(marks.get(), UFFDIO_REGISTER, &range) != 0) return {};
  return marks;
}

}  // namespace

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

CopiedPages::CopiedPages(std::span<std::byte> mapping, bool may_mark)
    : mapping_(mapping),
      pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
      marks_(pagemap_ && may_mark ? marks_over(mapping) : Descriptor()) {}

std::uint64_t CopiedPages::address_of(std::uint64_t page) const {
  return reinterpret_cast<std::uintptr_t>(mapping_.data()) + page * page_bytes();
}

/// Where pages are listed and none is a copy, nothing is entered either: a mapping's first look
/// leaves that to the reader's faults, of 16 pages each.
std::optional<std::size_t> CopiedPages::drop(const Pages& pages) const noexcept {
  return marks_ ? drop_marked(pages) : drop_listed(pages);
}

/// Pages are marked again by the same call that finds them written to, and stay marked when they
/// are dropped: a write at any moment is seen, if not now, then the next time. Pages that were
/// never marked count as written to.
CopiedPages::Dropped CopiedPages::drop_marked(const Pages& pages) const {
  std::array<Region, kRegionsAtOnce> regions{};
  ScanArguments scan{};
  scan.size = sizeof scan;
  scan.flags = kMarkAgain;
  scan.end = address_of(pages.end);
  scan.regions = reinterpret_cast<std::uintptr_t>(regions.data());
  scan.region_count = regions.size();
  scan.all_of = kWritten;
  scan.told = kWritten;
  std::size_t written = 0;
  for (scan.start = address_of(pages.first); scan.start < scan.end; scan.start = scan.walk_end) {
    const int found = ioctl(pagemap_.get(), kScan, &scan);
    if (found < 0 || scan.walk_end <= scan.start) return drop_run(pages);
    for (const Region& each : std::span(regions).first(static_cast<std::size_t>(found))) {
      const std::uint64_t first = (each.start - address_of(0)) / page_bytes();
      const auto dropped = drop_run({first, first + (each.end - each.start) / page_bytes()});
      if (!dropped) return dropped;
      written += *dropped;
    }
  }
  return written;
}

/// Runs of copies are dropped as one.
CopiedPages::Dropped CopiedPages::drop_listed(const Pages& pages) const {
  std::array<std::uint64_t, kEntriesAtOnce> entries{};
  std::size_t copies = 0;
  Pages run{pages.first, pages.first};
  for (std::uint64_t page = pages.first; page < pages.end;) {
    const auto count = std::min<std::uint64_t>(kEntriesAtOnce, pages.end - page);
    const std::size_t size = count * sizeof(std::uint64_t);
    const auto place = static_cast<off_t>(address_of(page) / page_bytes() * sizeof(std::uint64_t));
    if (pread(pagemap_.get(), entries.data(), size, place) != static_cast<ssize_t>(size)) {
      return drop_run(pages);
    }
    for (std::size_t i = 0; i < count; ++i, ++page) {
      if (!is_copy(entries[i])) continue;
      if (run.end != page) {
        const auto dropped = drop_run(run);
        if (!dropped) return dropped;
        copies += *dropped;
        run.first = page;
      }
      run.end = page + 1;
    }
  }
  const auto last = drop_run(run);
  return last ? Dropped(copies + *last) : last;
}

/// The file's pages are found again here, all at once: a fault for each would cost five times that.
CopiedPages::Dropped CopiedPages::drop_run(const Pages& pages) const {
  if (pages.first == pages.end) return 0;
  const std::size_t count = pages.end - pages.first;
  std::byte* const start = mapping_.data() + pages.first * page_bytes();
  if (madvise(start, count * page_bytes(), MADV_DONTNEED) != 0) return {};
#ifdef MADV_POPULATE_READ
  madvise(start, count * page_bytes(), MADV_POPULATE_READ);
#endif
  return count;
}

}  // namespace batchwright
