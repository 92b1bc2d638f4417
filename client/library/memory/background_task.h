#pragma once

#include <functional>
#include <thread>

#include "formats/formats.h"

namespace batchwright {

/// One piece of work at a time, done by a thread of its own, which is started by the first.
/// Threads: one at a time.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  /// Work that has not begun is not done.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  /// The last piece of work is finished. `work` does not throw.
  void begin(std::function<void()> work);
  /// Waits until the work is done. Does it itself when the thread has not come to it, or there is
  /// none to be had.
  void finish();

 private:
  void start();
  void run();

  Mutex mutex_;
  Condition changed_;
  std::function<void()> work_ GUARDED_BY(mutex_);  ///< What has not begun.
  bool running_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace batchwright
