#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/planning/plan.h"
#include "daemon/planning/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// What the stages order and cut: whole sequences, or chunks of them. An item's id is its
/// sequence's ordinal, or its place in the list of all chunks of all sequences.
class ItemTable {
 public:
  ItemTable() = default;
  /// Whole sequences.
  explicit ItemTable(std::span<const std::uint32_t> lengths) : lengths_(lengths) {}
  /// Chunks of `chunk` frames, `hop` apart; 8 bytes a sequence and 4 a chunk.
  /// Errors: infeasible, when there are more than 2^32 - 1 chunks.
  static Result<ItemTable> chunked(std::span<const std::uint32_t> lengths, std::uint32_t chunk,
                                   std::uint32_t hop);

  std::uint32_t length(std::uint32_t item) const {
    if (chunk_ == 0) return lengths_[item];
    const std::uint32_t ordinal = ordinals_[item];
    return std::min(chunk_, lengths_[ordinal] - (item - first_[ordinal]) * hop_);
  }

  Row row(std::uint32_t item) const;

  bool is_chunked() const { return chunk_ != 0; }
  /// Of all sequences.
  std::size_t items() const { return chunk_ == 0 ? lengths_.size() : ordinals_.size(); }

  std::uint32_t items_of(std::uint32_t ordinal) const {
    return chunk_ == 0 ? 1 : first_[ordinal + 1] - first_[ordinal];
  }
  /// Memory beyond the lengths.
  std::size_t bytes() const { return 4 * (first_.size() + ordinals_.size()); }

  /// Puts the items of a sequence behind `items`.
  void append_items(std::uint32_t ordinal, std::vector<std::uint32_t>& items) const;

  std::span<const std::uint32_t> sequence_lengths() const { return lengths_; }

 private:
  std::span<const std::uint32_t> lengths_;
  std::uint32_t chunk_ = 0;
  std::uint32_t hop_ = 0;
  std::vector<std::uint32_t> first_;     ///< Chunk mode: id of each sequence's first chunk.
  std::vector<std::uint32_t> ordinals_;  ///< Chunk mode: the sequence of each chunk.
};

/// Chunks that a sequence of `length` frames has.
std::uint64_t chunks_of(std::uint32_t length, std::uint32_t chunk, std::uint32_t hop);

}  // namespace batchwright
