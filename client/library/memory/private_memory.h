#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "client/library/ids.h"
#include "client/library/memory/background_task.h"
#include "client/library/memory/copy_buffers.h"
#include "client/library/memory/mapping.h"

namespace batchwright {

/// A batch's place in an arena.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// The memory in which one subscription may write to its batches, without others seeing it: each
/// batch is copied into one of its CopyBuffers, which are warm, and in huge pages. The copy of a
/// batch that is announced is made while the program works on the one before it. Cost: as many
/// buffers as batches are held at the same time and one, until the subscription is closed, and a
/// thread.
///
/// Lifetime: batches share it.
/// Threads: lend() and prepare() one at a time, the others any.
class PrivateMemory : public std::enable_shared_from_this<PrivateMemory> {
 public:
  /// A batch, by its place and its lease: another batch in the same place has another lease.
  struct Wanted {
    Place place;
    LeaseNumber lease;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  /// A batch's bytes, and what ends when it is released: then its buffer is used again. Threads:
  /// any.
  struct Lent {
    Payload payload;
    std::shared_ptr<const void> stay;
  };

  /// Errors: malformed_message (the place lies outside of the arena), does_not_fit (no memory).
  Result<Lent> lend(const std::shared_ptr<const Mapping>& arena, const Wanted& batch);
  /// The batch to be lent next is copied by another thread; where this fails, lend() copies it.
  void prepare(const std::shared_ptr<const Mapping>& arena, const Wanted& batch) noexcept;
  /// It does not come: the session is lost, and lease numbers begin again.
  void forget_prepared();
  /// The subscription is over. Gives back all but what batches lie in.
  void close();

 private:
  /// A copy that is made, or in the making.
  struct Prepared {
    Wanted batch;
    std::shared_ptr<CopyBuffer> buffer;
  };
  std::optional<Prepared> take_prepared();
  std::shared_ptr<CopyBuffer> copy_of(std::span<const std::byte> bytes, const Wanted& batch);

  CopyBuffers buffers_;
  BackgroundTask copying_;
  Mutex mutex_;
  /// Set while the task may be under way.
  std::optional<Prepared> prepared_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
