#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace batchwright {

/// Counts what happened on other threads, and waits for it with a bound.
class Tally {
 public:
  void add(std::uint64_t what) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(what);
    changed_.notify_all();
  }
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return condition(seen_); });
  }
  bool wait_for(std::size_t count) {
    return wait([count](const auto& seen) { return seen.size() >= count; });
  }
  std::vector<std::uint64_t> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace batchwright
