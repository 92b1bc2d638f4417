#include "daemon/delivery/feed/queue/work_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace batchwright {

/// The odd multiplier spreads neighbouring numbers over all bits.
QueueOwner queue_owner(std::uint64_t token, SubscriptionNumber subscription) {
  return {token ^ (std::uint64_t{subscription.value} * kGoldenStep)};
}

void WorkQueue::begin(Epoch epoch) {
  epoch_ = epoch;
  unused_ = 0;
  back_.clear();
  out_.clear();
  undone_.clear();
}

void WorkQueue::resume(State state) {
  epoch_ = Epoch{0};
  unused_ = state.unused;
  back_ = {state.back.begin(), state.back.end()};
  out_ = std::move(state.out);
  undone_ = std::move(state.undone);
}

std::optional<BatchIndex> WorkQueue::ahead(std::uint64_t distance, std::uint64_t batches) const {
  if (distance < back_.size()) {
    return BatchIndex{*std::next(back_.begin(), static_cast<std::ptrdiff_t>(distance))};
  }
  const std::uint64_t index = unused_ + (distance - back_.size());
  return index < batches ? std::optional(BatchIndex{index}) : std::nullopt;
}

std::optional<std::uint64_t> WorkQueue::distance(BatchIndex index) const {
  const auto found = back_.find(index.value);
  if (found != back_.end()) {
    return static_cast<std::uint64_t>(std::distance(back_.begin(), found));
  }
  if (index.value < unused_) return std::nullopt;
  return back_.size() + (index.value - unused_);
}

std::optional<BatchIndex> WorkQueue::next_for(QueueOwner owner, std::uint64_t batches) const {
  for (const std::uint64_t index : back_) {
    if (!gave_up(owner, BatchIndex{index})) return BatchIndex{index};
  }
  if (unused_ < batches) return BatchIndex{unused_};
  return ahead(0, batches);
}

bool WorkQueue::gave_up(QueueOwner owner, BatchIndex index) const {
  const auto found = undone_.find(index.value);
  return found != undone_.end() && found->second.by.contains(owner);
}

std::uint32_t WorkQueue::attempt(BatchIndex index) const {
  const auto found = undone_.find(index.value);
  return found == undone_.end() ? 1 : found->second.times + 1;
}

std::uint64_t WorkQueue::give(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
  // A journal shows that a batch came back by its being given again.
  std::erase_if(out_, [index](const auto& entry) { return entry.second.index == index; });
  back_.erase(index.value);
  std::uint64_t skipped = 0;
  for (; unused_ < index.value; ++unused_, ++skipped) back_.insert(unused_);
  unused_ = std::max(unused_, index.value + 1);
  out_[lease] = {index, owner, {}};
  return skipped;
}

/// The batch of a lease, which is out no longer. Empty when it is not out, or another owner's.
std::optional<BatchIndex> WorkQueue::take(LeaseNumber lease, QueueOwner owner) {
  const auto found = out_.find(lease);
  if (found == out_.end() || found->second.owner != owner) return {};
  const BatchIndex index = found->second.index;
  out_.erase(found);
  return index;
}

bool WorkQueue::done(LeaseNumber lease, QueueOwner owner) {
  const auto index = take(lease, owner);
  if (index) undone_.erase(index->value);
  return index.has_value();
}

bool WorkQueue::give_up(LeaseNumber lease, QueueOwner owner) {
  const auto index = take(lease, owner);
  if (!index) return false;
  back_.insert(index->value);
  Undone& undone = undone_[index->value];
  ++undone.times;
  undone.by.insert(owner);
  return true;
}

bool WorkQueue::set_aside(LeaseNumber lease, QueueOwner owner) {
  const auto index = take(lease, owner);
  if (!index) return false;
  Undone& undone = undone_[index->value];
  ++undone.times;
  undone.by.insert(owner);
  undone.set_aside = true;
  return true;
}

void WorkQueue::come_back(LeaseNumber lease) {
  const auto found = out_.find(lease);
  if (found == out_.end()) return;
  back_.insert(found->second.index.value);
  out_.erase(found);
}

void WorkQueue::keep(QueueOwner owner, Time until) {
  for (auto& [lease, given] : out_) {
    if (given.owner == owner && !given.kept_until) given.kept_until = until;
  }
}

void WorkQueue::keep_all(Time until) {
  for (auto& [lease, given] : out_) given.kept_until = until;
}

std::optional<WorkQueue::Time> WorkQueue::next_return() const {
  std::optional<Time> next;
  for (const auto& [lease, given] : out_) {
    if (given.kept_until && (!next || *given.kept_until < *next)) next = given.kept_until;
  }
  return next;
}

std::vector<std::pair<LeaseNumber, QueueOwner>> WorkQueue::due(Time now) const {
  std::vector<std::pair<LeaseNumber, QueueOwner>> all;
  for (const auto& [lease, given] : out_) {
    if (given.kept_until && *given.kept_until <= now) all.emplace_back(lease, given.owner);
  }
  return all;
}

std::vector<LeaseNumber> WorkQueue::claim(QueueOwner owner, std::span<const LeaseNumber> held) {
  std::vector<LeaseNumber> returned;
  for (const LeaseNumber lease : held) {
    const auto found = out_.find(lease);
    if (found == out_.end() || found->second.owner != owner || !found->second.kept_until) continue;
    found->second.kept_until.reset();
    returned.push_back(lease);
  }
  std::erase_if(out_, [this, owner](const auto& entry) {
    const bool lost = entry.second.kept_until && entry.second.owner == owner;
    if (lost) back_.insert(entry.second.index.value);
    return lost;
  });
  return returned;
}

bool WorkQueue::exhausted(std::uint64_t batches) const {
  return back_.empty() && unused_ >= batches;
}

std::uint64_t WorkQueue::first_undone() const {
  std::uint64_t first = back_.empty() ? unused_ : std::min(unused_, *back_.begin());
  for (const auto& [lease, given] : out_) first = std::min(first, given.index.value);
  return first;
}

std::size_t WorkQueue::out_beside(QueueOwner owner) const {
  return static_cast<std::size_t>(
      std::count_if(out_.begin(), out_.end(),
                    [owner](const auto& entry) { return entry.second.owner != owner; }));
}

}  // namespace batchwright
