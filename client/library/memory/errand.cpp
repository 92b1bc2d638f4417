#include "client/library/memory/errand.h"

#include <system_error>
#include <utility>

#include "client/library/held_back_signals.h"

namespace batchwright {

Errand::~Errand() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Errand::begin(std::function<void()> work) {
  start();
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Errand::finish() {
  std::unique_lock lock(mutex_);
  if (const auto work = std::exchange(work_, nullptr)) {
    lock.unlock();
    return work();
  }
  changed_.wait(lock, [this] { return !running_; });
}

void Errand::start() {
  if (thread_.joinable()) return;
  const HeldBackSignals signals;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return;  // finish() does the work
  }
}

void Errand::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ || ends_; });
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
