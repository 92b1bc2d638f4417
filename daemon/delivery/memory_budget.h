#pragma once

#include <atomic>
#include <cstdint>

namespace batchwright {

/// What the memory ceiling leaves for arenas that grow while the daemon runs, in bytes.
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

}  // namespace batchwright
