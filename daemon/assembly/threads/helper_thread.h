#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// Does one thing after the other on a thread of its own, which is there while there is work for
/// it. Where the system gives no thread, put() does the work itself: late is better than never. Or
/// does it on threads that are there anyway, and has none.
///
/// Lifetime: what the work refers to outlives end(). Threads: put() and drop() from any, except
/// from the thread itself while end() waits for it; end() and destruction by one.
class HelperThread {
 public:
  /// How long a thread without work stays.
  static constexpr std::chrono::milliseconds kLinger{10'000};

  /// Arranges for its argument to be called once, soon, on a thread that is neither the caller's
  /// nor held up by what the caller does. What it was given may call it, too.
  using Elsewhere = std::function<void(std::function<void()>)>;

  /// `name` is the thread's, shown by ps and top: 15 characters at most. The thread calls
  /// `enter`, if any, as the first that it does.
  explicit HelperThread(const char* name, std::function<void()> enter = nullptr,
                        std::chrono::milliseconds linger = kLinger);
  /// All that is put is done `elsewhere`, which outlives end().
  explicit HelperThread(Elsewhere elsewhere);
  /// end().
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  /// `work` is called without arguments and must not throw; it may be one that only moves.
  template <class Work>
  void put(Work work) {
    push([kept = std::make_shared<Work>(std::move(work))] { (*kept)(); });
  }
  /// What has not begun is not done.
  void drop();
  /// Waits for all that was put.
  void end();

 private:
  using Works = std::deque<std::function<void()>>;

  void push(std::function<void()> work);
  void run();
  void do_next() REQUIRES(mutex_);
  void run_elsewhere();
  void join();
  void go_on_elsewhere() REQUIRES(mutex_);

  const char* const name_ = nullptr;
  const std::function<void()> enter_;
  const std::chrono::milliseconds linger_{};
  const Elsewhere elsewhere_;
  Mutex mutex_;
  Condition changed_;
  Works works_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;  // the thread will look again
  bool stopping_ GUARDED_BY(mutex_) = false;
  unsigned calls_ GUARDED_BY(mutex_) = 0;   // of elsewhere_, under way
  std::jthread thread_ GUARDED_BY(mutex_);  // except for the last join
};

}  // namespace batchwright
