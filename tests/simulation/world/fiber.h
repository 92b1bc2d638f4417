#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace batchwright::simulation {

/// A function with a stack of its own, which runs until it yields, and goes on there when it is
/// resumed. So a program can be written as a loop that waits, and many of them run on one thread.
///
/// Lifetime: it has ended, or was never begun, when it is destroyed.
/// Threads: one for all fibers.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it yields or ends. Throws what `body` throws.
  void resume();
  /// Of the fiber that runs: back to the call of resume().
  void yield();
  bool has_ended() const { return ended_; }

 private:
  static void enter(unsigned low, unsigned high);
  void run();

  const std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::exception_ptr thrown_;
  bool ended_ = false;
  /// For AddressSanitizer, which has to know of each switch.
  [[maybe_unused]] const void* outer_stack_ = nullptr;
  [[maybe_unused]] std::size_t outer_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
};

}  // namespace batchwright::simulation
