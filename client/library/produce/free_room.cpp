#include "client/library/produce/free_room.h"

#include <iterator>

namespace batchwright {

FreeRoom::FreeRoom(std::uint64_t bytes) {
  if (const std::uint64_t whole = bytes / kGranule * kGranule; whole != 0) free_.emplace(0, whole);
}

std::optional<std::uint64_t> FreeRoom::take(std::uint64_t bytes) {
  const std::uint64_t wanted = taken_by(bytes);
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    const auto [place, size] = *part;
    if (size < wanted) continue;
    // The part keeps its node, which moves on: pushes of one size allocate nothing here.
    auto node = free_.extract(part);
    node.key() = place + wanted;
    node.mapped() = size - wanted;
    if (size != wanted) free_.insert(std::move(node));
    used_ += wanted;
    return place;
  }
  return std::nullopt;
}

void FreeRoom::give_back(std::uint64_t place, std::uint64_t bytes) {
  std::uint64_t size = taken_by(bytes);
  used_ -= size;
  const auto behind = free_.lower_bound(place);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == place) {
      before->second += size;
      if (behind != free_.end() && place + size == behind->first) {
        before->second += behind->second;
        free_.erase(behind);
      }
      return;
    }
  }
  if (behind != free_.end() && place + size == behind->first) {
    size += behind->second;
    free_.erase(behind);
  }
  free_.emplace(place, size);
}

}  // namespace batchwright
