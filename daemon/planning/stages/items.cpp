#include "daemon/planning/stages/items.h"

#include <fmt/core.h>

#include <bit>
#include <string>

namespace batchwright {
namespace {

/// The last chunk of block `number` whose bit is set in `firsts`, which has one.
std::uint32_t last_of(std::uint64_t firsts, std::uint32_t number) {
  return number * 64 + static_cast<std::uint32_t>(std::bit_width(firsts)) - 1;
}

}  // namespace

ChunkShape chunk_shape(const PlanSettings& settings) {
  return {settings.chunk, settings.hop == 0 ? settings.chunk : settings.hop, settings.min_chunk};
}

std::uint32_t chunks_of(std::uint32_t length, const ChunkShape& shape) {
  if (length <= shape.chunk) return 1;
  const std::uint32_t before = (length - shape.chunk - 1) / shape.hop + 1;
  // A last chunk that is too short is left out; the first one never is.
  return length - before * shape.hop < shape.least ? before : before + 1;
}

std::uint32_t ItemTable::items_of(std::uint32_t ordinal) const {
  const std::uint32_t length = lengths_[ordinal];
  // A sequence that is left out has one place too: ids then need no look-up of what is kept.
  return chunk_ == 0 || !allowed_.has(length) ? 1 : chunks_of(length, {chunk_, hop_, min_chunk_});
}

Result<ItemTable> ItemTable::chunked(std::span<const std::uint32_t> lengths,
                                     const PlanSettings& settings) {
  ItemTable table(lengths, settings);
  const ChunkShape shape = chunk_shape(settings);
  table.chunk_ = shape.chunk;
  table.hop_ = shape.hop;
  table.min_chunk_ = shape.least;
  std::uint64_t chunks = 0;
  for (std::uint32_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    chunks += table.items_of(ordinal);
  }
  if (chunks > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible,
                 fmt::format("chunk = {} and hop = {} make more than 4294967295 chunks",
                             table.chunk_, table.hop_)};
  }
  table.chunks_ = static_cast<std::uint32_t>(chunks);
  // A bit a chunk and 8 bytes a block: a chunk's sequence is found by counting bits.
  table.blocks_.resize((chunks + 63) / 64);
  std::uint32_t first = 0;
  for (std::uint32_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    table.blocks_[first / 64].firsts |= std::uint64_t{1} << first % 64;
    first += table.items_of(ordinal);
  }
  for (std::uint32_t i = 1; i < table.blocks_.size(); ++i) {
    const Block& before = table.blocks_[i - 1];
    const auto begun = static_cast<std::uint32_t>(std::popcount(before.firsts));
    table.blocks_[i].sequences = before.sequences + begun;
    table.blocks_[i].last_first = begun == 0 ? before.last_first : last_of(before.firsts, i - 1);
  }
  return table;
}

ItemTable::Place ItemTable::place_of(std::uint32_t item) const {
  const Block& block = blocks_[item / 64];
  // The bits up to and with the item's own: 63 - item % 64 above it are cut off.
  const std::uint64_t firsts = block.firsts & ~std::uint64_t{0} >> (63 - item % 64);
  const auto begun = static_cast<std::uint32_t>(std::popcount(firsts));
  const std::uint32_t first = begun == 0 ? block.last_first : last_of(firsts, item / 64);
  return {block.sequences + begun - 1, (item - first) * hop_};
}

Row ItemTable::listed_row(std::uint32_t item) const {
  const ListedRow& listed = listed_->rows[item];
  Row row;
  row.weight = listed_->weight(item);
  if (!listed.has_sequence()) return row;
  row.ordinal = listed.ordinal;
  row.start = listed.start;
  row.length = listed_length(listed);
  const bool last = std::uint64_t{row.start} + row.length == lengths_[row.ordinal];
  row.flags = static_cast<std::uint8_t>((row.start == 0 ? kRowReset : 0) | (last ? kRowLast : 0));
  return row;
}

Row ItemTable::row(std::uint32_t item) const {
  if (listed_) return listed_row(item);
  if (chunk_ == 0) return {item, 0, lengths_[item], kRowReset | kRowLast};
  const Place place = place_of(item);
  const std::uint32_t frames = chunk_length(place);
  const bool last = place.start / hop_ + 1 == items_of(place.ordinal);
  return {place.ordinal, place.start, frames,
          static_cast<std::uint8_t>((place.start == 0 ? kRowReset : 0) | (last ? kRowLast : 0))};
}

}  // namespace batchwright
