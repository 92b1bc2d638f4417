#include "daemon/assembly/arena/arena.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "daemon/assembly/arena/pinning.h"
#include "daemon/stats/stats.h"

namespace batchwright {
namespace {

/// Pages are taken in steps of this size, each a fraction of a second.
constexpr std::size_t kStepBytes = std::size_t{1} << 30;

Error failed(const char* call, std::size_t bytes) {
  const int code = errno;
  const bool short_of_memory = code == ENOMEM || code == ENOSPC || code == EFBIG;
  return {short_of_memory ? ErrorCode::busy : ErrorCode::io_error,
          fmt::format("arena: {} of {}: {}", call, in_mib(bytes), std::strerror(code))};
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

}  // namespace

std::uint64_t whole_pages(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
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
                                             const std::stop_token& stop) {
  const auto rounded = rounded_slot(slot_bytes);
  if (!rounded) return rounded.error();
  const auto bytes = check_room(slots, *rounded, memory_room());
  if (!bytes) return bytes.error();
  std::unique_ptr<Arena> arena(new Arena);
  arena->slot_bytes_ = *rounded;
  arena->bytes_ = *bytes;
  if (auto reserved = arena->reserve(stop); !reserved) return reserved.error();
  // No error where it cannot be done: all works, but pages may be swapped (README.md).
  arena->pinned_ = pin({arena->base_, arena->bytes_});
  return arena;
}

/// Takes every page now. Without it a page is taken when it is first touched, and when none is
/// left then, the touch is a SIGBUS.
Result<void> Arena::take_pages(const std::stop_token& stop) const {
  for (std::size_t taken = 0; taken < bytes_; taken += kStepBytes) {
    if (stop.stop_requested()) return Error{ErrorCode::disconnected, "arena: given up on request"};
    const std::size_t step = std::min(kStepBytes, bytes_ - taken);
    if (::fallocate(descriptor(), 0, static_cast<off_t>(taken), static_cast<off_t>(step)) != 0) {
      return failed("fallocate", bytes_);
    }
  }
  return {};
}

Result<void> Arena::reserve(const std::stop_token& stop) {
  descriptor_ = Descriptor(::memfd_create("batchwright", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor_) return failed("memfd_create", bytes_);
  const auto size = static_cast<off_t>(bytes_);
  if (::ftruncate(descriptor(), size) != 0) return failed("ftruncate", bytes_);
  if (auto taken = take_pages(stop); !taken) return taken;
  // Populated, so that no page fault is left for the first round of batches.
  void* const base =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor(), 0);
  if (base == MAP_FAILED) return failed("mmap", bytes_);
  base_ = static_cast<std::byte*>(base);
  // Last, for from here on no process, this one included, gets another writable mapping.
  constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(descriptor(), F_ADD_SEALS, kSeals) != 0) return failed("F_ADD_SEALS", bytes_);
  return {};
}

Arena::~Arena() {
  if (base_ == nullptr) return;
  unpin({base_, bytes_}, pinned_);
  ::munmap(base_, bytes_);
}

std::span<std::byte> Arena::slot(SlotIndex slot) const {
  if (slot.value >= bytes_ / slot_bytes_) std::abort();
  return {base_ + slot.value * slot_bytes_, slot_bytes_};
}

}  // namespace batchwright
