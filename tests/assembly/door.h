#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace batchwright {

/// A door that reads of a dataset stand at while it is shut.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++standing_;
    since_ = std::chrono::steady_clock::now();
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || admitted_ > 0; });
    if (!open_) --admitted_;
    --standing_;
  }
  void set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  bool somebody_stands() { return wait_for_standing(1); }
  bool wait_for_standing(int reads) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return standing_ >= reads; });
  }
  int standing() {
    const std::lock_guard lock(mutex_);
    return standing_;
  }
  /// One read gets through a shut door, once it has waited as long as for a disk.
  void admit_one() {
    std::unique_lock lock(mutex_);
    const auto long_enough = since_ + std::chrono::milliseconds(20);
    changed_.wait_until(lock, long_enough,
                        [&] { return std::chrono::steady_clock::now() >= long_enough; });
    ++admitted_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point since_;  ///< When somebody came to stand here last.
  int standing_ = 0;
  int admitted_ = 0;
  bool open_ = true;
};

}  // namespace batchwright
