#include "daemon/planning/items.h"

#include <limits>
#include <string>

namespace batchwright {

std::uint64_t chunks_of(std::uint32_t length, std::uint32_t chunk, std::uint32_t hop) {
  if (length <= chunk) return 1;
  return (std::uint64_t{length} - chunk + hop - 1) / hop + 1;
}

Result<ItemTable> ItemTable::chunked(std::span<const std::uint32_t> lengths, std::uint32_t chunk,
                                     std::uint32_t hop) {
  ItemTable table(lengths);
  table.chunk_ = chunk;
  table.hop_ = hop;
  table.first_.reserve(lengths.size() + 1);
  std::uint64_t chunks = 0;
  for (const std::uint32_t length : lengths) {
    table.first_.push_back(static_cast<std::uint32_t>(chunks));
    chunks += chunks_of(length, chunk, hop);
    if (chunks > std::numeric_limits<std::uint32_t>::max()) {
      return Error{ErrorCode::infeasible, "chunk = " + std::to_string(chunk) +
                                              " and hop = " + std::to_string(hop) +
                                              " make more than 4294967295 chunks"};
    }
  }
  table.first_.push_back(static_cast<std::uint32_t>(chunks));
  table.ordinals_.reserve(chunks);
  for (std::uint32_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    table.ordinals_.resize(table.first_[ordinal + 1], ordinal);
  }
  return table;
}

Row ItemTable::row(std::uint32_t item) const {
  if (chunk_ == 0) return {item, 0, lengths_[item], kRowReset | kRowLast};
  const std::uint32_t ordinal = ordinals_[item];
  const std::uint32_t start = (item - first_[ordinal]) * hop_;
  const std::uint32_t frames = length(item);
  const bool last = start + frames == lengths_[ordinal];
  return {ordinal, start, frames,
          static_cast<std::uint8_t>((start == 0 ? kRowReset : 0) | (last ? kRowLast : 0))};
}

void ItemTable::append_items(std::uint32_t ordinal, std::vector<std::uint32_t>& items) const {
  if (chunk_ == 0) {
    items.push_back(ordinal);
    return;
  }
  for (std::uint32_t item = first_[ordinal]; item < first_[ordinal + 1]; ++item) {
    items.push_back(item);
  }
}

}  // namespace batchwright
