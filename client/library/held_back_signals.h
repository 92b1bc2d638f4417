#pragma once

#include <pthread.h>

#include <csignal>

namespace batchwright {

/// Holds back all signals of this thread: one that it starts meanwhile gets none, for they are the
/// program's.
class HeldBackSignals {
 public:
  HeldBackSignals() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldBackSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldBackSignals(const HeldBackSignals&) = delete;
  HeldBackSignals& operator=(const HeldBackSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace batchwright
