#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "client/library/ids.h"
#include "client/library/memory/errand.h"
#include "client/library/memory/mapping.h"
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
/// The copy of a batch that is announced is made while the program works on the one before it.
/// Cost: as many seats as batches are held at the same time and one, until the subscription is
/// closed, and a thread.
///
/// Lifetime: batches share it. The view goes with its arena's Mapping, also where the program is in
///   no call; see Arenas.
/// Threads: lend() and prepare() one at a time, the others any.
class PrivateMemory : public std::enable_shared_from_this<PrivateMemory> {
 public:
  /// A batch, by its place and its lease: another batch in the same place has another lease.
  struct Wanted {
    Place place;
    LeaseNumber lease;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  /// A batch's bytes, and what ends when it is released: then pages that were written to are
  /// dropped, so this must come before the daemon hears of the release. Threads: any.
  struct Lent {
    Payload payload;
    std::shared_ptr<const void> stay;
  };

  /// Errors: malformed_message (the place lies outside of the arena), does_not_fit (no memory).
  Result<Lent> lend(const std::shared_ptr<const Mapping>& arena, const Wanted& batch);
  /// The batch to be lent next. If it will be a copy, that is made by another thread meanwhile;
  /// where this fails, lend() makes it.
  void prepare(const std::shared_ptr<const Mapping>& arena, const Wanted& batch) noexcept;
  /// It does not come: the session is lost, and lease numbers begin anew.
  void forget_prepared();
  /// The subscription is over. Gives back all but what batches lie in.
  void close();

 private:
  /// A copy that is made, or in the making.
  struct Prepared {
    Wanted batch;
    std::shared_ptr<Seat> seat;
  };
  std::optional<Prepared> take_prepared();
  bool copies_next(const std::shared_ptr<const Mapping>& arena) const REQUIRES(mutex_);
  std::shared_ptr<PrivateView> view_of(const std::shared_ptr<const Mapping>& arena);
  Result<Lent> lend_view(std::shared_ptr<PrivateView> view, const Place& place);
  Result<Lent> lend_copy(std::span<const std::byte> bytes, const Wanted& batch);
  std::shared_ptr<Seat> copy_of(std::span<const std::byte> bytes, const Wanted& batch);
  void note(std::size_t written, std::uint64_t bytes) noexcept;

  Seats seats_;
  Errand copying_;
  Mutex mutex_;
  WriteHabit habit_ GUARDED_BY(mutex_);
  /// Set while the errand may be under way.
  std::optional<Prepared> prepared_ GUARDED_BY(mutex_);
  std::weak_ptr<const Mapping> arena_ GUARDED_BY(mutex_);
  /// Of that arena; none where there can be none.
  std::weak_ptr<PrivateView> view_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
