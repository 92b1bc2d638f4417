#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
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
/// A batch may come back because its owner could not do it. That is counted, so that a batch that
/// no worker can do is seen, and it goes to other owners first.
///
/// Pure bookkeeping, the same whether it happens now or is read from a journal.
class WorkQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A batch that was begun and not done so often is worth a word.
  static constexpr std::uint32_t kOften = 3;

  struct Given {
    BatchIndex index;
    QueueOwner owner;
    /// Set while the batch is reserved for an owner that is not connected.
    std::optional<Time> kept_until;
  };

  /// How a batch fared that came back because it was begun and not done.
  struct Undone {
    std::uint32_t times = 0;
    std::set<QueueOwner> by;  ///< Those that had it.
    bool set_aside = false;   ///< It counts as done, and is never given.
  };

  /// All of it, as plain values.
  struct State {
    std::uint64_t unused = 0;         ///< The first batch that was never given.
    std::vector<std::uint64_t> back;  ///< Batches that came back.
    std::map<LeaseNumber, Given> out;
    std::map<std::uint64_t, Undone> undone;
  };
  State state() const { return {unused_, {back_.begin(), back_.end()}, out_, undone_}; }
  /// Goes on so in epoch 0.
  void resume(State state);

  Epoch epoch() const { return epoch_; }
  void begin(Epoch epoch);

  /// The batch that is `distance` places from the front; those that came back are first.
  std::optional<BatchIndex> ahead(std::uint64_t distance, std::uint64_t batches) const;
  /// How far a batch that is still to be given is from the front.
  std::optional<std::uint64_t> distance(BatchIndex index) const;

  /// The batch that an owner gets next: one that it could not do only if there is no other.
  std::optional<BatchIndex> next_for(QueueOwner owner, std::uint64_t batches) const;
  /// Whether it had this batch and could not do it.
  bool gave_up(QueueOwner owner, BatchIndex index) const;
  /// 1 for a batch that was not begun, and one more for each time that it was not done then.
  std::uint32_t attempt(BatchIndex index) const;

  /// Returns how many batches before this one were never given, and now come first: a journal has
  /// lost them.
  std::uint64_t give(LeaseNumber lease, BatchIndex index, QueueOwner owner);
  /// Marks a batch as done. False when the lease is not out, or another owner's.
  bool done(LeaseNumber lease, QueueOwner owner);
  /// Takes a batch back undone that was not begun: it is the next to be given.
  void come_back(LeaseNumber lease);
  /// The same for one that its owner began, which counts. False as for done().
  bool give_up(LeaseNumber lease, QueueOwner owner);
  /// The same, and gives it no more. False as for done().
  bool set_aside(LeaseNumber lease, QueueOwner owner);
  /// keep() reserves the owner's batches until it reconnects; keep_all() does so for every batch
  /// that is out.
  void keep(QueueOwner owner, Time until);
  void keep_all(Time until);
  /// The first moment at which a reserved batch comes back, if there is one.
  std::optional<Time> next_return() const;
  /// The batches reserved until `now` or earlier, in the order in which they were given.
  std::vector<std::pair<LeaseNumber, QueueOwner>> due(Time now) const;

  /// The owner is back and holds `held`. Its other reserved batches never reached it, and come
  /// back. Returns those of `held` that belong to it.
  std::vector<LeaseNumber> claim(QueueOwner owner, std::span<const LeaseNumber> held);

  /// Whether nothing is left to give.
  bool exhausted(std::uint64_t batches) const;
  /// Whether each batch is done.
  bool over(std::uint64_t batches) const { return exhausted(batches) && out_.empty(); }
  /// The number of batches that owners other than `owner` hold.
  std::size_t out_beside(QueueOwner owner) const;
  /// The first batch that is not done.
  std::uint64_t first_undone() const;
  std::uint64_t done_count() const { return unused_ - back_.size() - out_.size(); }
  const std::map<LeaseNumber, Given>& out() const { return out_; }
  /// The batches that were begun and are not done, by their index.
  const std::map<std::uint64_t, Undone>& undone() const { return undone_; }

 private:
  std::optional<BatchIndex> take(LeaseNumber lease, QueueOwner owner);

  Epoch epoch_;
  std::uint64_t unused_ = 0;          ///< The first batch that was never given.
  std::set<std::uint64_t> back_;      ///< Batches that were given and came back.
  std::map<LeaseNumber, Given> out_;  ///< Batches that are out, by lease.
  std::map<std::uint64_t, Undone> undone_;
};

}  // namespace batchwright
