#include "client/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace batchwright {
namespace {

struct Watched {
  std::mutex mutex;
  std::vector<int> descriptors;
};

/// Made when it is first needed, and never destroyed: a fork may come during exit.
Watched& watched() {
  static Watched* const kept = new Watched;
  return *kept;
}

// The lock is held across the fork, so that the child finds the list in order.
void before_fork() { watched().mutex.lock(); }
void in_parent() { watched().mutex.unlock(); }
void in_child() {
  for (const int fd : watched().descriptors) ::close(fd);
  watched().descriptors.clear();
  watched().mutex.unlock();
}

}  // namespace

ForkGuard::ForkGuard(int fd) : fd_(fd) {
  static const int registered = pthread_atfork(before_fork, in_parent, in_child);
  static_cast<void>(registered);  // out of memory: children keep their copies, nothing worse
  const std::lock_guard lock(watched().mutex);
  watched().descriptors.push_back(fd);
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(watched().mutex);
  std::erase(watched().descriptors, fd_);
}

}  // namespace batchwright
