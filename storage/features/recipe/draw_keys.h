#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/dataset/dataset.h"
#include "storage/features/frontend/frontend.h"

namespace batchwright {

/// What tells a shard from all others: FNV-1a (64 bits) of the key of its first sequence, of the
/// length of that, and of the CRC-32C of its primary payload. It is the same for copies, on every
/// host, and when sequences are appended. README.md has it byte by byte. Blocks on the disk.
/// Errors: corrupt_record, store_unavailable.
Result<std::uint64_t> shard_identity(const Snapshot& of, Ordinal first);

/// The keys of the draws of a snapshot's sequences in one epoch.
/// Immutable. Threads: any.
class DrawKeys {
 public:
  /// One shard with sequences. Without an identity: all of the dataset, in version 1.
  struct Shard {
    std::uint64_t first = 0;  ///< Ordinal of its first sequence.
    std::optional<std::uint64_t> identity;
  };

  /// Version 1.
  explicit DrawKeys(std::uint64_t seed = 0, Epoch epoch = Epoch{0})
      : DrawKeys(seed, epoch, {Shard{}}) {}
  /// At least one shard, by rising ordinals.
  DrawKeys(std::uint64_t seed, Epoch epoch, std::vector<Shard> shards)
      : seed_(seed), epoch_(epoch), shards_(std::move(shards)) {}

  /// Whether a row that comes again is drawn again. Without, `use` makes no difference.
  bool count_uses() const { return shards_.front().identity.has_value(); }
  /// The same in another epoch.
  DrawKeys at(Epoch epoch) const { return {seed_, epoch, shards_}; }
  /// `use`: how often the same row came before in the epoch.
  DrawKey of(Ordinal ordinal, std::uint64_t use) const;

 private:
  friend class StageDraws;
  std::size_t shard_of(std::uint64_t ordinal) const;

  std::uint64_t seed_;
  Epoch epoch_;
  std::vector<Shard> shards_;
};

/// The draws of one stage for all sequences, with use 0: of millions, they are found by half the
/// work. Lifetime: the keys stay. Threads: any.
class StageDraws {
 public:
  StageDraws(const DrawKeys& keys, DrawStage stage);
  Draws of(std::uint64_t ordinal) const {
    const std::size_t shard = keys_.shard_of(ordinal);
    return epochs_[shard].of(ordinal - keys_.shards_[shard].first, 0);
  }

 private:
  const DrawKeys& keys_;
  std::vector<EpochDraws> epochs_;  // one a shard
};

}  // namespace batchwright
