#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

#include "daemon/assembly/arena/huge_pages.h"
#include "daemon/assembly/arena/memory_room.h"
#include "formats/formats.h"

namespace batchwright {

/// The way in which an arena's pages are kept in memory.
enum class PinState : std::uint8_t { none = 0, locked = 1, cuda = 2 };
std::string_view to_string(PinState state);

/// Whether this program could page-lock memory for a GPU.
bool built_with_cuda();

/// `bytes` rounded up to whole pages, which slots begin on.
std::uint64_t whole_pages(std::uint64_t bytes);

/// Bytes of an arena, if there is room for it. Errors: does_not_fit when there will never be;
/// busy when others have the memory just now, such as the clients of a daemon before this one,
/// which keep its arenas for as long as they hold a batch; invalid_argument (no slot).
Result<std::size_t> check_room(std::uint32_t slots, std::size_t slot_bytes, const MemoryRoom& room);

/// Adds seals to a memfd, as fcntl(2) does: 0, or -1 and errno.
using AddSeals = int (*)(int descriptor, int seals);
int add_seals(int descriptor, int seals);

/// Whether this kernel can make an arena at all: of another user's memory that may be read and not
/// written it knows from 5.1 on. Errors: bad_configuration, with this kernel's version and the
/// needed one.
Result<void> check_kernel(AddSeals add = add_seals);

/// One feed's shared memory: a sealed memfd, divided into slots of equal size.
///
/// Every page is reserved and touched by create(), so that running out is an error there and
/// never a SIGBUS later. Sealed against shrinking, growing and new writable mappings; the
/// daemon's own mapping, made before the seal, stays the only writable one.
/// Threads: create and destroy on one; slot() from any. It outlives every span that it gave.
class Arena {
 public:
  /// `slot_bytes` is rounded up to whole pages. A large arena takes long: `stop` ends that.
  /// Huge pages come from the reserved pool where it has room for the whole arena, otherwise from
  /// where the kernel finds them.
  /// Errors: io_error (names the call), those of check_room(),
  /// invalid_argument (no slot, or slots of no bytes), disconnected (it was to stop),
  /// does_not_fit (huge pages are required, and there are none).
  static Result<std::unique_ptr<Arena>> create(std::uint32_t slots, std::size_t slot_bytes,
                                               HugePages huge = HugePages::automatic,
                                               const std::stop_token& stop = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::span<std::byte> slot(SlotIndex slot) const;
  std::uint32_t slots() const { return static_cast<std::uint32_t>(bytes_ / slot_bytes_); }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::size_t bytes() const { return bytes_; }
  /// The memfd, for SCM_RIGHTS; the arena keeps ownership.
  int descriptor() const { return descriptor_.get(); }
  PinState pinned() const { return pinned_; }
  PageKind pages() const { return pages_; }

 private:
  Arena() = default;
  bool reserve_in_pool(const HugePageRoom& room, const std::stop_token& stop);
  Result<void> reserve_beside_pool(const HugePageRoom& room, const std::stop_token& stop);
  Result<void> reserve_in(PageKind kind, std::size_t page_bytes, const std::stop_token& stop);
  Result<void> map(PageKind kind, const std::stop_token& stop);
  Result<void> take_pages(const std::stop_token& stop) const;
  void give_back();

  std::byte* base_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;  ///< Whole pages of the kind it lies in: at least bytes_.
  PageKind pages_ = PageKind::small;
  Descriptor descriptor_;
  PinState pinned_ = PinState::none;
};

}  // namespace batchwright
