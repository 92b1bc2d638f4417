#include "daemon/assembly/arena/arena.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/mman.h>  // a libc may lack MADV_POPULATE_WRITE
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "daemon/assembly/arena/pinning.h"
#include "daemon/stats/stats.h"

namespace batchwright {
namespace {

/// Pages are taken in steps of this size, each a fraction of a second.
constexpr std::size_t kStepBytes = std::size_t{1} << 30;
constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failed(const char* call, std::size_t bytes) {
  const int code = errno;
  const bool short_of_memory = code == ENOMEM || code == ENOSPC || code == EFBIG;
  return {short_of_memory ? ErrorCode::busy : ErrorCode::io_error,
          fmt::format("arena: {} of {}: {}", call, in_mib(bytes), reason_with_limit(code))};
}

/// Errors: invalid_argument, does_not_fit.
Result<std::size_t> rounded_slot(std::size_t bytes) {
  if (bytes == 0) return Error{ErrorCode::invalid_argument, "arena: a slot has 1 byte and up"};
  const std::size_t rounded = whole_pages(bytes);
  if (rounded >= bytes) return rounded;
  return Error{ErrorCode::does_not_fit, "arena: a slot's bytes pass 64 bits"};
}

Error lack(ErrorCode code, std::uint32_t slots, std::size_t slot_bytes, const std::string& what) {
  std::size_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(slots, slot_bytes, &bytes);
  return {code, fmt::format("arena: {} slots of {} need {}, {}", slots, in_mib(slot_bytes),
                            overflow ? "over 2^64 bytes" : in_mib(bytes), what)};
}

Error given_up() { return {ErrorCode::disconnected, "arena: given up on request"}; }

std::size_t rounded_to(std::size_t unit, std::size_t bytes) {
  return unit == 0 ? bytes : (bytes + unit - 1) / unit * unit;
}

}  // namespace

int add_seals(int descriptor, int seals) { return ::fcntl(descriptor, F_ADD_SEALS, seals); }

Result<void> check_kernel(AddSeals add) {
  // Asked, not read out of its version: vendors take features back to older kernels.
  const Descriptor trial(::memfd_create("batchwright", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // That there is no memory, or no descriptor, is for the arena to say.
  if (trial && (add(trial.get(), kSeals) == 0 || errno != EINVAL)) return {};
  if (!trial && errno != ENOSYS && errno != EINVAL) return {};
  utsname kernel{};
  ::uname(&kernel);
  return Error{ErrorCode::bad_configuration,
               fmt::format("this kernel is Linux {}; needed: 5.1 or later, whose memory can be "
                           "shared so that clients read it and cannot write (F_SEAL_FUTURE_WRITE)",
                           kernel.release)};
}

std::uint64_t whole_pages(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return rounded_to(page, bytes);
}

Result<std::size_t> check_room(std::uint32_t slots, std::size_t slot_bytes,
                               const MemoryRoom& room) {
  if (slots == 0) return Error{ErrorCode::invalid_argument, "arena: it has 1 slot and up"};
  const std::string most = in_mib(room.most);
  // Divided, not multiplied: the product may pass 64 bits.
  if (slot_bytes > room.most / slots) {
    return lack(ErrorCode::does_not_fit, slots, slot_bytes,
                fmt::format("this machine, or the control group, has at most {}", most));
  }
  if (slot_bytes > room.available / slots) {
    return lack(ErrorCode::busy, slots, slot_bytes,
                fmt::format("{} of {} are available now", in_mib(room.available), most));
  }
  return slots * slot_bytes;
}

Result<std::unique_ptr<Arena>> Arena::create(std::uint32_t slots, std::size_t slot_bytes,
                                             HugePages huge, const std::stop_token& stop) {
  const auto rounded = rounded_slot(slot_bytes);
  if (!rounded) return rounded.error();
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  const auto bytes = check_room(slots, *rounded, {kAny, kAny});
  if (!bytes) return bytes.error();
  std::unique_ptr<Arena> arena(new Arena);
  arena->slot_bytes_ = *rounded;
  arena->bytes_ = *bytes;
  const HugePageRoom room = huge == HugePages::off ? HugePageRoom{} : huge_page_room();
  if (!arena->reserve_in_pool(room, stop)) {
    // The pool is no part of the memory that is available, and so only what lies beside it counts.
    const auto fits = check_room(slots, *rounded, memory_room());
    if (!fits) return fits.error();
    if (auto reserved = arena->reserve_beside_pool(room, stop); !reserved) return reserved.error();
  }
  if (huge == HugePages::require && arena->pages_ == PageKind::small) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("arena: {} in huge pages are required; found: {}; allowed: a pool with "
                    "room for all of it, or shmem_enabled = \"advise\" and memory in "
                    "pieces of {}",
                    in_mib(*bytes), room.describe(), in_mib(room.page_bytes))};
  }
  // No error where it cannot be done: all works, but pages may be swapped (README.md).
  arena->pinned_ = pin({arena->base_, arena->mapped_bytes_});
  return arena;
}

/// False where there is too little of it, which another process may have been faster to take.
bool Arena::reserve_in_pool(const HugePageRoom& room, const std::stop_token& stop) {
  const bool fits = rounded_to(room.page_bytes, bytes_) <= room.reserved_free;
  if (room.page_bytes == 0 || !fits) return false;
  if (reserve_in(PageKind::reserved, room.page_bytes, stop)) return true;
  give_back();
  return false;
}

Result<void> Arena::reserve_beside_pool(const HugePageRoom& room, const std::stop_token& stop) {
  return reserve_in(room.gives_on_request() ? PageKind::transparent : PageKind::small, 1, stop);
}

/// Takes every page now. Without it a page is taken when it is first touched, and when none is
/// left then, the touch is a SIGBUS.
Result<void> Arena::take_pages(const std::stop_token& stop) const {
  for (std::size_t taken = 0; taken < mapped_bytes_; taken += kStepBytes) {
    if (stop.stop_requested()) return given_up();
    const std::size_t step = std::min(kStepBytes, mapped_bytes_ - taken);
    // The kernel gives huge pages to a mapping that asks, not to a file: so by touching them.
    if (base_ != nullptr && ::madvise(base_ + taken, step, MADV_POPULATE_WRITE) == 0) continue;
    if (::fallocate(descriptor(), 0, static_cast<off_t>(taken), static_cast<off_t>(step)) != 0) {
      return failed("fallocate", mapped_bytes_);
    }
  }
  return {};
}

Result<void> Arena::map(PageKind kind, const std::stop_token& stop) {
  const bool asks = kind == PageKind::transparent;
  // Those that cannot be asked for are taken before they are mapped: all at once, or not at all.
  if (!asks) {
    if (auto taken = take_pages(stop); !taken) return taken;
  }
  // Populated, so that no page fault is left for the first round of batches.
  const int flags = asks ? MAP_SHARED : MAP_SHARED | MAP_POPULATE;
  void* const base = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, flags, descriptor(), 0);
  if (base == MAP_FAILED) return failed("mmap", mapped_bytes_);
  base_ = static_cast<std::byte*>(base);
  pages_ = kind;
  if (!asks) return {};
  ::madvise(base_, mapped_bytes_, MADV_HUGEPAGE);
  if (auto taken = take_pages(stop); !taken) return taken;
  // What the kernel found: it may have had pieces of that size for a part only.
  if (transparent_bytes(base_) < mapped_bytes_ / 2) pages_ = PageKind::small;
  return {};
}

Result<void> Arena::reserve_in(PageKind kind, std::size_t page_bytes, const std::stop_token& stop) {
  mapped_bytes_ = rounded_to(page_bytes, bytes_);
  const unsigned huge = kind == PageKind::reserved ? MFD_HUGETLB : 0;
  descriptor_ = Descriptor(::memfd_create("batchwright", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge));
  if (!descriptor_) return failed("memfd_create", mapped_bytes_);
  const auto size = static_cast<off_t>(mapped_bytes_);
  if (::ftruncate(descriptor(), size) != 0) return failed("ftruncate", mapped_bytes_);
  if (auto mapped = map(kind, stop); !mapped) return mapped;
  // Last, for from here on no process, this one included, gets another writable mapping.
  if (add_seals(descriptor(), kSeals) != 0) return failed("F_ADD_SEALS", mapped_bytes_);
  return {};
}

void Arena::give_back() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
  base_ = nullptr;
  descriptor_ = {};
}

Arena::~Arena() {
  if (base_ != nullptr) unpin({base_, mapped_bytes_}, pinned_);
  give_back();
}

std::span<std::byte> Arena::slot(SlotIndex slot) const {
  if (slot.value >= bytes_ / slot_bytes_) std::abort();
  return {base_ + slot.value * slot_bytes_, slot_bytes_};
}

}  // namespace batchwright
