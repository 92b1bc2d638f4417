#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace batchwright {

/// The records of a shard that were found sound: a bit each, in blocks that do not move, so that
/// snapshots of growing size share them without a lock.
class VerifiedRecords {
 public:
  /// Whether a record is verified. Only for ordinals within grow_to(). Threads: any.
  bool test(std::uint64_t ordinal) const {
    return (word(ordinal).load(std::memory_order_relaxed) & bit(ordinal)) != 0;
  }
  void set(std::uint64_t ordinal) {
    word(ordinal).fetch_or(bit(ordinal), std::memory_order_relaxed);
  }

  /// Threads: one at a time, and not while another uses this very object; copies share the bits.
  void grow_to(std::uint64_t sequences) {
    while (blocks_.size() * kBlockBits < sequences) blocks_.push_back(std::make_shared<Block>());
  }

 private:
  static constexpr std::uint64_t kBlockBits = 65536;
  using Block = std::array<std::atomic<std::uint64_t>, kBlockBits / 64>;

  std::atomic<std::uint64_t>& word(std::uint64_t ordinal) const {
    return (*blocks_[ordinal / kBlockBits])[ordinal % kBlockBits / 64];
  }
  static std::uint64_t bit(std::uint64_t ordinal) { return std::uint64_t{1} << (ordinal % 64); }

  std::vector<std::shared_ptr<Block>> blocks_;
};

}  // namespace batchwright
