#pragma once

#include <csignal>

namespace batchwright {

/// While it lives, the first SIGINT or SIGTERM sets a flag instead of ending the process; the
/// next of its kind ends it. One at a time in a process. Threads: any may ask.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;

 private:
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
};

}  // namespace batchwright
