#pragma once

#include <sys/types.h>

namespace batchwright {

/// Sees to it that a forked child closes its copy of the socket `fd` at once.
///
/// The daemon takes a client for alive as long as its connections are open. A child that inherited
/// them (a DataLoader's worker, say) would keep a dead trainer's batches from coming back.
/// A descriptor that stands for something else by then, as one that ZeroMQ has closed and the
/// program got again, is left alone.
/// Threads: any.
class ForkGuard {
 public:
  explicit ForkGuard(int fd);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// The kernel's name of the socket behind a descriptor.
  struct Identity {
    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };

 private:
  const Identity socket_;
};

}  // namespace batchwright
