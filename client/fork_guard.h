#pragma once

namespace batchwright {

/// Sees to it that a forked child closes its copy of `fd` at once.
///
/// The daemon takes a client for alive as long as the arena connection is open. A child that
/// inherited it (a DataLoader's worker, say) would keep a dead trainer's batches from coming back.
/// Threads: any. The descriptor is forgotten before it is closed.
class ForkGuard {
 public:
  explicit ForkGuard(int fd);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

 private:
  int fd_;
};

}  // namespace batchwright
