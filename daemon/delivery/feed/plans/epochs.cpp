#include "daemon/delivery/feed/plans/epochs.h"

#include <algorithm>
#include <utility>

namespace batchwright {

std::shared_ptr<const EpochSource> Epochs::find(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? nullptr : found->second.planned.source;
}

std::shared_ptr<const BatchSource> Epochs::batches(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? nullptr : found->second.planned.batches;
}

std::uint64_t Epochs::steps(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? 0 : found->second.planned.source->plan.steps();
}

void Epochs::planned(PlannedEpoch epoch) {
  Entry& entry = entries_[epoch.source->epoch];
  entry.assembled.assign(epoch.source->plan.batches(), false);
  entry.planned = std::move(epoch);
}

std::optional<Epoch> Epochs::last() const {
  return entries_.empty() ? std::nullopt : std::optional(entries_.rbegin()->first);
}

std::set<Epoch> Epochs::numbers() const {
  std::set<Epoch> numbers;
  for (const auto& [number, entry] : entries_) numbers.insert(number);
  return numbers;
}

std::vector<PlannedEpoch> Epochs::all() const {
  std::vector<PlannedEpoch> epochs;
  for (const auto& [number, entry] : entries_) epochs.push_back(entry.planned);
  return epochs;
}

std::vector<BatchIndex> Epochs::worst(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? std::vector<BatchIndex>() : found->second.planned.worst;
}

bool Epochs::mark_assembled(const BatchId& id) {
  const auto found = entries_.find(id.epoch);
  if (found == entries_.end()) return false;
  std::vector<bool>& assembled = found->second.assembled;
  const bool before = assembled[id.index.value];
  assembled[id.index.value] = true;
  return before;
}

std::uint64_t Epochs::mark_lost(Epoch epoch, Ordinal ordinal) {
  const auto found = entries_.find(epoch);
  if (found == entries_.end()) return 0;
  found->second.lost.insert(ordinal);
  return found->second.lost.size();
}

std::uint64_t losses_allowed(double share, std::uint64_t sequences) {
  if (share == 0.0) return 0;
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(share * static_cast<double>(sequences)));
}

void Epochs::keep(const std::set<Epoch>& needed) {
  std::erase_if(entries_, [&needed](const auto& entry) { return !needed.contains(entry.first); });
}

}  // namespace batchwright
