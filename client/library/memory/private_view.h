#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/library/memory/copied_pages.h"
#include "client/library/memory/mapping.h"

namespace batchwright {

/// A batch's place in an arena.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// An arena mapped once more, privately, for one subscription that may write to it: the kernel
/// copies a page when it is first written to, and the daemon and all others keep what they see.
/// Pages that are not written to are the arena's own, so they always show the slot as it is.
///
/// A copy outlives the slot's batch, so it is dropped when the batch is released, and looked for
/// once more when the next one in its place is handed out, for a program may write to a view
/// behind the release.
///
/// Lifetime: batches share it, beside the Mapping it was made from.
/// Threads: any.
class PrivateView {
 public:
  /// Null where private pages cannot be had or told from the arena's: no address space, an arena
  /// of hugetlb pages (a copy takes one that is reserved, or ends the process), no /proc, or a
  /// program that locks its memory, as with mlockall().
  static std::shared_ptr<PrivateView> map(const Mapping& arena);

  PrivateView(const PrivateView&) = delete;
  PrivateView& operator=(const PrivateView&) = delete;

  std::span<const std::byte> bytes() const { return all(); }

  /// Makes the place show what the arena has there. False when a page of it belongs to a batch
  /// that is held: the same one a second time, or a neighbour's where slots do not begin on pages.
  /// False for good once the kernel kept a copy that was to be dropped.
  bool hold(const Place& place);
  /// Drops what was written there. Returns how many pages were copies; all, where they are kept.
  std::size_t end(const Place& place) noexcept;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* start) const noexcept;
  };
  using Start = std::unique_ptr<std::byte, Unmap>;

  explicit PrivateView(Start start) : start_(std::move(start)), copies_(all()) {}
  static Pages pages_of(const Place& place);
  std::optional<std::size_t> drop(const Pages& pages) noexcept;
  void let_go(const Pages& pages) noexcept;
  std::span<std::byte> all() const { return {start_.get(), start_.get_deleter().bytes}; }

  const Start start_;
  const CopiedPages copies_;
  std::atomic<bool> keeps_copies_ = false;
  Mutex mutex_;
  std::vector<Pages> held_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
