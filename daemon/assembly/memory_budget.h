#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// Bytes that are left of a ceiling: that of the daemon's memory, or of a feed's row cache.
/// Threads: any.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t left = 0) : left_(left) {}

  void set_left(std::uint64_t bytes) { left_ = bytes; }
  std::uint64_t left() const { return left_; }
  /// `holder`, if any, is the one that took them.
  void give_back(std::uint64_t bytes, const std::string& holder = {}) {
    left_ += bytes;
    if (holder.empty()) return;
    const MutexLock lock(mutex_);
    const auto found = held_.find(holder);
    if (found == held_.end()) return;
    found->second -= std::min(found->second, bytes);
    if (found->second == 0) held_.erase(found);
  }
  /// False, and nothing taken, when there is not so much left. `holder`, if any, is listed by
  /// held() from then on.
  bool take(std::uint64_t bytes, const std::string& holder = {}) {
    std::uint64_t left = left_;
    do {
      if (left < bytes) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes));
    if (holder.empty() || bytes == 0) return true;
    const MutexLock lock(mutex_);
    held_[holder] += bytes;
    return true;
  }
  /// The bytes of each holder that has some.
  std::map<std::string, std::uint64_t> held() const {
    const MutexLock lock(mutex_);
    return held_;
  }

 private:
  std::atomic<std::uint64_t> left_;
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t> held_ GUARDED_BY(mutex_);
};

/// Bytes of a budget for an arena that is not there yet: given back unless they are released to it.
struct GiveBackMemory {
  std::shared_ptr<MemoryBudget> budget;
  std::uint64_t bytes = 0;
  std::string holder = {};
  void operator()(MemoryBudget* of) const { of->give_back(bytes, holder); }
};
using MemoryClaim = std::unique_ptr<MemoryBudget, GiveBackMemory>;

/// 0 where nothing is claimed.
inline std::uint64_t bytes_of(const MemoryClaim& claim) {
  return claim ? claim.get_deleter().bytes : 0;
}

/// Null when there is not so much left. `holder` is the feed that it is for.
inline MemoryClaim claim_memory(const std::shared_ptr<MemoryBudget>& budget, std::uint64_t bytes,
                                const std::string& holder = {}) {
  return {budget->take(bytes, holder) ? budget.get() : nullptr,
          GiveBackMemory{budget, bytes, holder}};
}

}  // namespace batchwright
