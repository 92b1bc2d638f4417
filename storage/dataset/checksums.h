#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/dataset/length_index.h"

namespace batchwright {

/// The CRC-32C that each record of a shard carries, by the length index: what a record must say, so
/// that one of other content is told from it. Writers of earlier versions do not enter it, so it
/// may be missing for some. Threads: any, once it is read.
class RecordChecksums {
 public:
  RecordChecksums() = default;

  /// Those of the first `sequences` of a shard that has `stored`. Takes 4 bytes a sequence.
  /// Errors: corrupt_record (a damaged chunk), store_unavailable, does_not_fit (memory).
  static Result<RecordChecksums> read(const Transaction& transaction, std::uint64_t stored,
                                      std::uint64_t sequences);

  /// That of a sequence; empty where it is not known.
  std::optional<std::uint32_t> of(std::uint64_t ordinal) const {
    const std::uint64_t chunk = ordinal / kChunkSequences;
    if (chunk >= known_.size() || ordinal % kChunkSequences >= known_[chunk]) return {};
    return values_[ordinal];
  }

 private:
  std::vector<std::uint32_t> values_;
  std::vector<std::uint16_t> known_;  // of each chunk, how many from its first on
};

}  // namespace batchwright
