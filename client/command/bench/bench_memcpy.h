#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright {

/// The yardstick: threads that copy the same rows from the same LMDB map, one after another, into
/// touched memory as large as the feed's arena. Each copies every n-th row, n being their number,
/// into a part of its own.
class MemcpyBaseline {
 public:
  /// Reads every page once, so that each later measurement finds its page tables filled.
  /// Errors: as Catalog::open() and Snapshot::record(); does_not_fit (memory).
  static Result<MemcpyBaseline> prepare(const std::vector<std::string>& shards,
                                        std::span<const std::uint64_t> ordinals,
                                        std::size_t arena_bytes, std::size_t threads);

  /// Bytes per second of all threads: the best of about five rounds of 0.2 s or one pass each.
  double measure();

 private:
  struct Ring {
    std::vector<std::byte> bytes;
    std::size_t place = 0;
  };

  MemcpyBaseline() = default;
  double round();
  std::uint64_t copy_once(std::size_t thread);

  std::unique_ptr<Catalog> catalog_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<std::span<const std::byte>> rows_;  // into the snapshot's map
  std::vector<Ring> rings_;                       // one a thread
};

}  // namespace batchwright
