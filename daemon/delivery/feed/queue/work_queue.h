#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Names the holder of a queue's batch across reconnects and restarts: a client's token and the
/// number of its subscription, mixed.
struct QueueOwner {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const QueueOwner&, const QueueOwner&) = default;
};
QueueOwner queue_owner(std::uint64_t token, SubscriptionNumber subscription);

/// The batches of an epoch that were given, with their owners, those that came back undone, and
/// those done. Everything else follows: a batch that is neither out nor back nor still to be given
/// is done.
///
/// Pure bookkeeping, the same whether it happens now or is read from a journal.
class WorkQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Given {
    BatchIndex index;
    QueueOwner owner;
    /// Set while the batch is reserved for an owner that is not connected.
    std::optional<Time> kept_until;
  };

  Epoch epoch() const { return epoch_; }
  void begin(Epoch epoch);

  /// The batch that is `distance` places from the front; those that came back are first.
  std::optional<BatchIndex> ahead(std::uint64_t distance, std::uint64_t batches) const;
  /// How far a batch that is still to be given is from the front.
  std::optional<std::uint64_t> distance(BatchIndex index) const;

  void give(LeaseNumber lease, BatchIndex index, QueueOwner owner);
  /// Marks a batch as done. False when the lease is not out, or another owner's.
  bool done(LeaseNumber lease, QueueOwner owner);
  /// Takes a batch back undone: it is the next to be given.
  void come_back(LeaseNumber lease);
  /// keep() reserves the owner's batches until it reconnects; keep_all() does so for every batch
  /// that is out.
  void keep(QueueOwner owner, Time until);
  void keep_all(Time until);
  /// The first moment at which a reserved batch comes back, if there is one.
  std::optional<Time> next_return() const;
  /// Takes back the batches reserved until `now` or earlier. True when there were any.
  bool end_keeping(Time now);

  /// The owner is back and holds `held`. Its other reserved batches never reached it, and come
  /// back. Returns those of `held` that belong to it.
  std::vector<LeaseNumber> claim(QueueOwner owner, std::span<const LeaseNumber> held);

  /// Whether nothing is left to give.
  bool exhausted(std::uint64_t batches) const;
  /// Whether each batch is done.
  bool over(std::uint64_t batches) const { return exhausted(batches) && out_.empty(); }
  /// The number of batches that owners other than `owner` hold.
  std::size_t out_beside(QueueOwner owner) const;
  std::uint64_t done_count() const { return unused_ - back_.size() - out_.size(); }
  const std::map<LeaseNumber, Given>& out() const { return out_; }

 private:
  Epoch epoch_;
  std::uint64_t unused_ = 0;          ///< The first batch that was never given.
  std::set<std::uint64_t> back_;      ///< Batches that were given and came back.
  std::map<LeaseNumber, Given> out_;  ///< Batches that are out, by lease.
};

}  // namespace batchwright
