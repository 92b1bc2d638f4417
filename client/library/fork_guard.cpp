#include "client/library/fork_guard.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "formats/formats.h"

namespace batchwright {
namespace {

struct Watched {
  Mutex mutex;
  std::vector<ForkGuard::Identity> sockets GUARDED_BY(mutex);
};

ForkGuard::Identity identify(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {};
  return {fd, status.st_dev, status.st_ino};
}

/// Made when it is first needed, and never destroyed: a fork may come during exit.
Watched& watched() {
  static Watched* const kept = new Watched;
  return *kept;
}

// The lock is held across the fork, so that the child finds the list in order. The analysis does
// not follow it from one function to the next.
void before_fork() NO_THREAD_SAFETY_ANALYSIS { watched().mutex.lock(); }
void in_parent() NO_THREAD_SAFETY_ANALYSIS { watched().mutex.unlock(); }
void in_child() NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& socket : watched().sockets) {
    if (socket.fd >= 0 && identify(socket.fd) == socket) ::close(socket.fd);
  }
  watched().sockets.clear();
  watched().mutex.unlock();
}

}  // namespace

ForkGuard::ForkGuard(int fd) : socket_(identify(fd)) {
  static const int registered = pthread_atfork(before_fork, in_parent, in_child);
  static_cast<void>(registered);  // out of memory: children keep their copies, nothing worse
  Watched& all = watched();
  const MutexLock lock(all.mutex);
  all.sockets.push_back(socket_);
}

ForkGuard::~ForkGuard() {
  Watched& all = watched();
  const MutexLock lock(all.mutex);
  const auto found = std::find(all.sockets.begin(), all.sockets.end(), socket_);
  if (found != all.sockets.end()) all.sockets.erase(found);
}

}  // namespace batchwright
