#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "client/library/memory/mapping.h"
#include "client/library/memory/payload.h"
#include "client/library/memory/private_view.h"
#include "client/library/memory/seats.h"
#include "client/library/memory/write_habit.h"

namespace batchwright {

/// The memory in which one subscription may write to its batches, without others seeing it.
///
/// Problem: a private mapping copies a page when it is first written to, by a fault that costs
/// several times the copying. A trainer that writes to every value would be slower than one that
/// makes a copy and writes there. A copy of every batch, on the other hand, is a waste for a
/// trainer that writes to few.
/// Idea: a batch is shown in a PrivateView at first, where one that is not written to costs a look
/// at its pages' state. Once a batch comes back written to, the next are copied ahead into Seats,
/// which are warm, in huge pages, and need no look; now and then one is shown in the view again.
/// Cost: as many seats as batches are held at the same time, until the subscription is closed.
///
/// Lifetime: batches share it. The view goes with its arena's Mapping, also where the program is in
///   no call; see Arenas.
/// Threads: any.
class PrivateMemory : public std::enable_shared_from_this<PrivateMemory> {
 public:
  /// A batch's bytes, and what ends when it is released: then pages that were written to are
  /// dropped, so this must come before the daemon hears of the release. Threads: any.
  struct Lent {
    Payload payload;
    std::shared_ptr<const void> stay;
  };

  /// Errors: malformed_message (the place lies outside of the arena), does_not_fit (no memory).
  Result<Lent> lend(const std::shared_ptr<const Mapping>& arena, const Place& place);
  /// The subscription is over. Gives back all but what batches lie in.
  void close();

 private:
  std::shared_ptr<PrivateView> view_of(const std::shared_ptr<const Mapping>& arena);
  Result<Lent> lend_view(std::shared_ptr<PrivateView> view, const Place& place);
  Result<Lent> lend_copy(std::span<const std::byte> batch, std::uint64_t offset);
  void note(std::size_t written, std::uint64_t bytes) noexcept;

  Seats seats_;
  std::mutex mutex_;
  WriteHabit habit_;  // all locked by mutex_
  std::weak_ptr<const Mapping> arena_;
  std::weak_ptr<PrivateView> view_;  ///< Of that arena; none where there can be none.
};

}  // namespace batchwright
