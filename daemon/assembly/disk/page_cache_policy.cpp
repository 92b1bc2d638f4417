#include "daemon/assembly/disk/page_cache_policy.h"

#include <utility>

namespace batchwright {

bool PageCachePolicy::has(const Snapshot* snapshot) const {
  const auto found = datasets_.find(snapshot);
  return found != datasets_.end() && !found->second.snapshot.expired();
}

void PageCachePolicy::add(const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t file_bytes,
                          std::uint64_t sequences) {
  std::erase_if(datasets_, [](const auto& entry) { return entry.second.snapshot.expired(); });
  if (datasets_.contains(snapshot.get())) return;
  datasets_.emplace(snapshot.get(), Kept{snapshot, file_bytes, 0, std::vector<bool>(sequences)});
}

bool PageCachePolicy::stays(const Snapshot* snapshot, std::uint64_t ordinal, std::size_t bytes) {
  const auto found = datasets_.find(snapshot);
  if (found == datasets_.end() || !is_short()) return true;
  Kept& kept = found->second;
  if (ordinal >= kept.records.size()) return true;
  if (kept.records[ordinal] && kept_bytes() <= kept_limit()) return true;
  if (kept.records[ordinal]) {  // there is less room than there was
    kept.records[ordinal] = false;
    kept.bytes -= bytes;
    return false;
  }
  if (kept_bytes() + bytes > kept_limit()) return false;
  kept.records[ordinal] = true;
  kept.bytes += bytes;
  return true;
}

std::size_t PageCachePolicy::kept_bytes() const {
  std::size_t sum = 0;
  for (const auto& [snapshot, kept] : datasets_) sum += kept.bytes;
  return sum;
}

std::uint64_t PageCachePolicy::dataset_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [snapshot, kept] : datasets_) sum += kept.file_bytes;
  return sum;
}

}  // namespace batchwright
