#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright {

/// The yardstick that a daemon cannot beat: one thread that copies the same rows from the same LMDB
/// map, one after another, into touched memory as large as the feed's arena.
class MemcpyBaseline {
 public:
  /// Reads every page once, so that each later measurement finds its page tables filled.
  /// Errors: as Catalog::open() and Snapshot::record(); does_not_fit (memory).
  static Result<MemcpyBaseline> prepare(const std::vector<std::string>& shards,
                                        std::span<const std::uint64_t> ordinals,
                                        std::size_t arena_bytes);

  /// Bytes per second: the best of about five rounds of 0.2 s or one pass.
  double measure();

 private:
  MemcpyBaseline() = default;
  std::uint64_t copy_once();

  std::unique_ptr<Catalog> catalog_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<std::span<const std::byte>> rows_;  // into the snapshot's map
  std::vector<std::byte> ring_;
  std::size_t place_ = 0;
};

}  // namespace batchwright
