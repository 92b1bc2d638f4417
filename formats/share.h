#pragma once

#include <cstdint>
#include <optional>

#include "formats/base/base.h"
#include "formats/ids.h"

namespace batchwright {

/// The batches of every global step that a subscription takes: `count` of `world`, from `first` on.
///
/// A daemon and its client keep a place in an epoch as the number of batches that the share has
/// taken of it, and all else follows from that number.
struct Share {
  std::uint32_t world = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 1;

  /// The step of the batch after `taken` ones, and how many of its batches are taken.
  std::uint64_t step_after(std::uint64_t taken) const { return taken / count; }
  std::uint32_t taken_of_step(std::uint64_t taken) const {
    return static_cast<std::uint32_t>(taken % count);
  }
  /// The batches before a step.
  std::uint64_t before_step(std::uint64_t step) const { return step * count; }
  /// The batch after `taken` ones.
  BatchIndex at(std::uint64_t taken) const {
    return BatchIndex{step_after(taken) * world + first + taken_of_step(taken)};
  }
  /// How many of this share's come before the batch; empty when it is not of this share.
  std::optional<std::uint64_t> before(BatchIndex index) const {
    const std::uint64_t place = index.value % world;
    if (place < first || place >= std::uint64_t{first} + count) return std::nullopt;
    return index.value / world * count + place - first;
  }
};

/// All batches of each step, as a replica takes them.
inline Share whole_share(std::uint32_t world) { return {world, 0, world}; }

/// The batches of one rank. Errors: invalid_argument when rank >= ranks, ranks is 0 or does not
/// divide world; the message names the figures.
Result<Share> rank_share(std::uint32_t world, std::uint32_t rank, std::uint32_t ranks);

}  // namespace batchwright
