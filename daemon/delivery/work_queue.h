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

/// Names who holds a batch of a queue, across reconnects and restarts: a client's token and the
/// number of its subscription, mixed.
struct QueueOwner {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const QueueOwner&, const QueueOwner&) = default;
};
QueueOwner queue_owner(std::uint64_t token, std::uint32_t subscription);

/// Which batches of an epoch were given to whom, which came back undone, and which are done.
/// Everything else follows: a batch that is neither out nor back nor still to be given is done.
///
/// Pure bookkeeping, the same whether it happens now or is read from a journal.
class WorkQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Given {
    BatchIndex index;
    QueueOwner owner;
    std::optional<Time> kept_until;  ///< Its owner is not connected; it is kept for him.
  };

  Epoch epoch() const { return epoch_; }
  void begin(Epoch epoch);

  /// The batch that is `distance` places from the front; first come those that came back.
  std::optional<BatchIndex> ahead(std::uint64_t distance, std::uint64_t batches) const;
  /// How far a batch that is still to be given is from the front.
  std::optional<std::uint64_t> distance(BatchIndex index) const;

  void give(std::uint64_t lease, BatchIndex index, QueueOwner owner);
  /// False when the lease is not out, or another's.
  bool done(std::uint64_t lease, QueueOwner owner);
  /// Undone: the batch is the next to be given.
  void come_back(std::uint64_t lease);
  /// Keeps what the owner holds for his return, and all that is out for everyone's.
  void keep(QueueOwner owner, Time until);
  void keep_all(Time until);
  /// The first moment at which something that is kept comes back, if anything is.
  std::optional<Time> next_return() const;
  /// What is kept until now, or until before, comes back. True when there was any.
  bool end_keeping(Time now);

  /// The owner is back and holds `held`. What else was kept for him never reached him, and
  /// comes back. Returns those of `held` that are his.
  std::vector<std::uint64_t> claim(QueueOwner owner, std::span<const std::uint64_t> held);

  /// Nothing is left to give.
  bool exhausted(std::uint64_t batches) const;
  /// Each batch is done.
  bool over(std::uint64_t batches) const { return exhausted(batches) && out_.empty(); }
  /// Batches that others than `owner` hold.
  std::size_t out_beside(QueueOwner owner) const;
  std::uint64_t done_count() const { return unused_ - back_.size() - out_.size(); }
  const std::map<std::uint64_t, Given>& out() const { return out_; }

 private:
  Epoch epoch_;
  std::uint64_t unused_ = 0;            ///< The first batch that was never given.
  std::set<std::uint64_t> back_;        ///< Given once, and come back.
  std::map<std::uint64_t, Given> out_;  ///< By lease.
};

}  // namespace batchwright
