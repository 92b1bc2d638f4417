#include "daemon/assembly/threads/helper_thread.h"

#include "formats/formats.h"

namespace batchwright {

HelperThread::HelperThread(const char* name, std::function<void()> enter,
                           std::chrono::milliseconds linger)
    : name_(name), enter_(std::move(enter)), linger_(linger) {}

HelperThread::HelperThread(Elsewhere elsewhere) : elsewhere_(std::move(elsewhere)) {}

HelperThread::~HelperThread() { end(); }

void HelperThread::push(std::function<void()> work) {
  MutexLock lock(mutex_);
  works_.push_back(std::move(work));
  if (std::exchange(running_, true)) return changed_.notify_one();
  if (elsewhere_) return go_on_elsewhere();
  if (thread_.joinable()) thread_.join();  // it has left run(), or is about to
  if (auto thread = start_thread(name_, [this](const auto&) { run(); })) {
    thread_ = std::move(*thread);
    return;
  }
  running_ = false;
  const Works own = std::exchange(works_, {});
  lock.unlock();
  for (const auto& each : own) each();
}

void HelperThread::drop() {
  Works dropped;  // freed without the lock
  const MutexLock lock(mutex_);
  dropped.swap(works_);
}

void HelperThread::end() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (elsewhere_)
      return changed_.wait(lock, [this]() REQUIRES(mutex_) { return !running_ && calls_ == 0; });
  }
  changed_.notify_one();
  join();
}

/// Without the lock: the thread needs it to end, and no other is started any more.
void HelperThread::join() NO_THREAD_SAFETY_ANALYSIS {
  if (thread_.joinable()) thread_.join();
}

void HelperThread::run() {
  if (enter_) enter_();
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, linger_,
                      [this]() REQUIRES(mutex_) { return stopping_ || !works_.empty(); });
    if (works_.empty()) {
      running_ = false;
      return;
    }
    do_next();
  }
}

void HelperThread::do_next() {
  auto work = std::move(works_.front());
  works_.pop_front();
  mutex_.unlock();
  work();
  work = nullptr;  // what it holds is not freed under the lock
  mutex_.lock();
}

/// The work may be done, and waited for, before `elsewhere_` has returned: so its calls are
/// counted.
void HelperThread::go_on_elsewhere() {
  ++calls_;
  mutex_.unlock();
  elsewhere_([this] { run_elsewhere(); });
  mutex_.lock();
  --calls_;
  changed_.notify_all();  // with the lock: end() may be waiting to destroy this
}

/// One piece of work a call: what else is done there comes between.
void HelperThread::run_elsewhere() {
  MutexLock lock(mutex_);
  if (!works_.empty()) do_next();
  if (!works_.empty()) return go_on_elsewhere();
  running_ = false;
  changed_.notify_all();  // with the lock: end() may be waiting to destroy this
}

}  // namespace batchwright
