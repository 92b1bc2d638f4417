#include "daemon/delivery/feed/plans/epoch_contents.h"

#include <algorithm>
#include <utility>

namespace batchwright {

std::optional<std::uint64_t> EpochContents::find(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.data);
}

bool EpochContents::decide(Epoch epoch, std::uint64_t data) {
  Entry& entry = entries_.try_emplace(epoch, Entry{data, false, 0}).first->second;
  entry.used = ++clock_;
  return entry.data == data;
}

void EpochContents::planned(Epoch epoch) {
  if (const auto found = entries_.find(epoch); found != entries_.end()) {
    found->second.planned = true;
  }
}

void EpochContents::replace(Epoch epoch, std::uint64_t data) {
  entries_[epoch] = {data, false, ++clock_};
}

std::vector<Epoch> EpochContents::tidy(const std::function<bool(Epoch)>& in_use) {
  std::vector<Epoch> forgotten;
  std::vector<std::pair<std::uint64_t, Epoch>> idle;
  for (const auto& [epoch, entry] : entries_) {
    if ((entry.planned && entries_.size() <= kMostIdle) || in_use(epoch)) continue;
    if (entry.planned) {
      idle.emplace_back(entry.used, epoch);
    } else {
      forgotten.push_back(epoch);
    }
  }
  if (idle.size() > kMostIdle) {
    std::sort(idle.begin(), idle.end());
    idle.resize(idle.size() - kMostIdle);
    for (const auto& [used, epoch] : idle) forgotten.push_back(epoch);
  }
  for (const Epoch epoch : forgotten) entries_.erase(epoch);
  return forgotten;
}

}  // namespace batchwright
