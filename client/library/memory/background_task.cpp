#include "client/library/memory/background_task.h"

#include <utility>

#include "client/library/held_back_signals.h"

namespace batchwright {

BackgroundTask::~BackgroundTask() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundTask::begin(std::function<void()> work) {
  start();
  {
    const MutexLock lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void BackgroundTask::finish() {
  MutexLock lock(mutex_);
  if (const auto work = std::exchange(work_, nullptr)) {
    lock.unlock();
    return work();
  }
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return !running_; });
}

void BackgroundTask::start() {
  if (thread_.joinable()) return;
  const HeldBackSignals signals;
  // Without a thread finish() does the work.
  if (auto thread = start_thread(nullptr, [this](const auto&) { run(); })) {
    thread_ = std::move(*thread);
  }
}

void BackgroundTask::run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return work_ || ends_; });
    if (ends_) return;
    auto work = std::exchange(work_, nullptr);
    running_ = true;
    lock.unlock();
    work();
    work = nullptr;  // and with it what it kept
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace batchwright
