#pragma once

#include <cstdint>
#include <optional>

#include "daemon/assembly/assembly.h"
#include "formats/formats.h"

namespace batchwright {

/// The places of every global step that a subscription takes: `count` of `world`, from `first`.
struct Share {
  std::uint32_t world = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

/// All places, as a replica takes them.
Share whole_share(std::uint32_t world);

/// The places of one rank. Errors: invalid_argument when rank >= ranks, ranks is 0 or does not
/// divide world; the message names the figures.
Result<Share> rank_share(std::uint32_t world, std::uint32_t rank, std::uint32_t ranks);

/// The position of a subscription: the batch it gets next. Pure arithmetic.
class Cursor {
 public:
  Cursor(const Share& share, Epoch epoch, Step step);

  Epoch epoch() const { return epoch_; }
  /// The global step of the next batch; equal to the epoch's steps at its end.
  Step step() const { return Step{taken_ / share_.count}; }
  const Share& share() const { return share_; }

  bool at_end(std::uint64_t steps) const { return taken_ >= steps * share_.count; }
  BatchId next() const { return {epoch_, index_of(taken_)}; }
  void advance() { ++taken_; }
  void begin_next_epoch();

  /// The batch that comes `distance` batches after the next one within this epoch of `steps`
  /// steps, and beyond it in the epoch that follows. Empty where an epoch after that would begin.
  std::optional<BatchId> ahead(std::uint64_t distance, std::uint64_t steps,
                               std::uint64_t next_steps) const;

  /// How many batches come before `id`: 0 for the next one. Empty when `id` lies behind, is not
  /// this subscription's, or is further away than the epoch that follows.
  std::optional<std::uint64_t> distance(const BatchId& id, std::uint64_t steps) const;

 private:
  BatchIndex index_of(std::uint64_t taken) const;

  Share share_;
  Epoch epoch_;
  std::uint64_t taken_;  ///< Batches of this epoch that came before the next one.
};

}  // namespace batchwright
