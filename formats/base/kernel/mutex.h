#pragma once

#include <condition_variable>
#include <mutex>

// A mutex of which clang proves that what it guards is touched only while it is held
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html). Other compilers see plain ones.
#ifdef __clang__
#define BW_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define BW_THREAD_SAFETY(attribute)
#endif

/// A member that is touched only while the mutex is held.
#define GUARDED_BY(mutex) BW_THREAD_SAFETY(guarded_by(mutex))
/// A function, or a lambda, that is called only while the mutex, or each of several, is held.
#define REQUIRES(...) BW_THREAD_SAFETY(exclusive_locks_required(__VA_ARGS__))
/// A function that returns whether it has locked the mutex, or all of several.
#define TRY_ACQUIRE(...) BW_THREAD_SAFETY(try_acquire_capability(true, __VA_ARGS__))
/// A function of which the analysis does not understand which mutex is held. Its comment says why.
#define NO_THREAD_SAFETY_ANALYSIS BW_THREAD_SAFETY(no_thread_safety_analysis)

namespace batchwright {

/// std::mutex, with what the analysis knows of it.
class BW_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() BW_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() BW_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }
  bool try_lock() BW_THREAD_SAFETY(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex until it goes, except for where it is let go in between. A condition waits with
/// it.
class BW_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BW_THREAD_SAFETY(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  /// Of a mutex that is held already, as after try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t held) REQUIRES(mutex) : lock_(mutex.mutex_, held) {}
  ~MutexLock() BW_THREAD_SAFETY(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() BW_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() BW_THREAD_SAFETY(release_capability()) { lock_.unlock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

/// std::condition_variable for a MutexLock. What a wait is for is a lambda that REQUIRES the mutex.
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <class Holds>
  void wait(MutexLock& lock, Holds holds) {
    condition_.wait(lock.lock_, holds);
  }
  template <class Duration>
  std::cv_status wait_for(MutexLock& lock, const Duration& most) {
    return condition_.wait_for(lock.lock_, most);
  }
  /// Whether it holds.
  template <class Duration, class Holds>
  bool wait_for(MutexLock& lock, const Duration& most, Holds holds) {
    return condition_.wait_for(lock.lock_, most, holds);
  }

 private:
  std::condition_variable condition_;
};

}  // namespace batchwright
