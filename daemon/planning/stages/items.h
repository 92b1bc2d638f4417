#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "daemon/planning/plan.h"
#include "daemon/planning/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// The longest that a sequence may be.
inline constexpr std::uint32_t kLongest = std::numeric_limits<std::uint32_t>::max() / 2;

/// The sequences that min_length and max_length let through.
struct AllowedLengths {
  std::uint32_t min = 0, max = kLongest;

  AllowedLengths() = default;
  explicit AllowedLengths(const PlanSettings& s)
      : min(s.min_length), max(s.max_length == 0 ? kLongest : s.max_length) {}
  bool has(std::uint32_t length) const { return length >= min && length <= max; }
};

/// The items that the stages order and cut: whole sequences, chunks of them, or the rows of an
/// order file. An item's id is its sequence's ordinal, or its place in the list of the chunks of
/// all sequences, where those that are left out have one, or its place in the file.
class ItemTable {
 public:
  ItemTable() = default;
  /// Whole sequences, or the rows of settings.order_rows.
  ItemTable(std::span<const std::uint32_t> lengths, const PlanSettings& settings)
      : lengths_(lengths), allowed_(settings), listed_(settings.order_rows) {}
  /// Chunks of `chunk` frames, `hop` apart; a quarter of a byte a chunk.
  /// Errors: infeasible, when there are more than 2^32 - 1 chunks.
  static Result<ItemTable> chunked(std::span<const std::uint32_t> lengths,
                                   const PlanSettings& settings);

  std::uint32_t length(std::uint32_t item) const {
    if (listed_) return listed_length(listed_->rows[item]);
    return chunk_ == 0 ? lengths_[item] : chunk_length(place_of(item));
  }
  float weight(std::uint32_t item) const { return listed_ ? listed_->weight(item) : 1.0F; }

  Row row(std::uint32_t item) const;

  bool is_chunked() const { return chunk_ != 0; }
  /// The order file that the items are of; null: they are of none.
  const OrderRows* listed() const { return listed_.get(); }
  /// The number of items of all sequences.
  std::size_t items() const {
    if (listed_) return listed_->rows.size();
    return chunk_ == 0 ? lengths_.size() : chunks_;
  }

  std::uint32_t items_of(std::uint32_t ordinal) const;
  /// Memory beyond the lengths.
  std::size_t bytes() const { return blocks_.size() * sizeof(Block); }

  /// Calls `use(item, length)` with the items of a sequence, whose first is `first`. Gives the
  /// first of the next.
  template <class Use>
  std::uint32_t each_item_of(std::uint32_t ordinal, std::uint32_t first, const Use& use) const {
    std::uint32_t left = lengths_[ordinal];
    const bool whole = chunk_ == 0 || left <= chunk_;
    for (; chunk_ != 0 && left > chunk_; left -= hop_) use(first++, chunk_);
    if (whole || left >= min_chunk_) use(first++, left);
    return first;
  }

  std::span<const std::uint32_t> sequence_lengths() const { return lengths_; }
  const AllowedLengths& allowed() const { return allowed_; }

 private:
  /// 64 chunks: which of them are the first of their sequence, and what came before.
  struct Block {
    std::uint64_t firsts = 0;
    std::uint32_t sequences = 0;   ///< Sequences that begin before this block.
    std::uint32_t last_first = 0;  ///< First chunk of the last of those.
  };
  /// A chunk's sequence, and where in it the chunk begins.
  struct Place {
    std::uint32_t ordinal, start;
  };

  Row listed_row(std::uint32_t item) const;
  std::uint32_t listed_length(const ListedRow& row) const {
    if (row.frames != 0 || !row.has_sequence()) return row.frames;
    return lengths_[row.ordinal];
  }
  Place place_of(std::uint32_t item) const;
  std::uint32_t chunk_length(Place place) const {
    return std::min(chunk_, lengths_[place.ordinal] - place.start);
  }

  std::span<const std::uint32_t> lengths_;
  AllowedLengths allowed_;
  std::uint32_t chunk_ = 0;
  std::uint32_t hop_ = 0;
  std::uint32_t min_chunk_ = 0;
  std::uint32_t chunks_ = 0;
  std::vector<Block> blocks_;
  std::shared_ptr<const OrderRows> listed_;
};

/// The rule by which sequences are cut into chunks, in frames.
struct ChunkShape {
  std::uint32_t chunk, hop;
  std::uint32_t least;  ///< A last chunk that is shorter is left out; the first one never is.
};

/// The chunk table of the settings, for settings with `chunk`.
ChunkShape chunk_shape(const PlanSettings& settings);

/// Chunks that a sequence of `length` frames has.
std::uint32_t chunks_of(std::uint32_t length, const ChunkShape& shape);

}  // namespace batchwright
