#include "client/library/fork_guard.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace batchwright {
namespace {

struct Watched {
  std::mutex mutex;
  std::vector<ForkGuard::Identity> sockets;
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

// The lock is held across the fork, so that the child finds the list in order.
void before_fork() { watched().mutex.lock(); }
void in_parent() { watched().mutex.unlock(); }
void in_child() {
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
  const std::lock_guard lock(watched().mutex);
  watched().sockets.push_back(socket_);
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(watched().mutex);
  const auto found = std::find(watched().sockets.begin(), watched().sockets.end(), socket_);
  if (found != watched().sockets.end()) watched().sockets.erase(found);
}

}  // namespace batchwright
