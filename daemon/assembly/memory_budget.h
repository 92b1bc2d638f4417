#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace batchwright {

/// Bytes that are left of a ceiling: that of the daemon's memory, or of a feed's row cache.
/// Threads: any.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t left = 0) : left_(left) {}

  void set_left(std::uint64_t bytes) { left_ = bytes; }
  std::uint64_t left() const { return left_; }
  void give_back(std::uint64_t bytes) { left_ += bytes; }
  /// False, and nothing taken, when there is not so much left.
  bool take(std::uint64_t bytes) {
    std::uint64_t left = left_;
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

 private:
  std::atomic<std::uint64_t> left_;
};

/// Bytes of a budget for an arena that is not there yet: given back unless they are released to it.
struct GiveBackMemory {
  std::shared_ptr<MemoryBudget> budget;
  std::uint64_t bytes = 0;
  void operator()(MemoryBudget* of) const { of->give_back(bytes); }
};
using MemoryClaim = std::unique_ptr<MemoryBudget, GiveBackMemory>;

/// 0 where nothing is claimed.
inline std::uint64_t bytes_of(const MemoryClaim& claim) {
  return claim ? claim.get_deleter().bytes : 0;
}

/// Null when there is not so much left.
inline MemoryClaim claim_memory(const std::shared_ptr<MemoryBudget>& budget, std::uint64_t bytes) {
  return {budget->take(bytes) ? budget.get() : nullptr, GiveBackMemory{budget, bytes}};
}

}  // namespace batchwright
