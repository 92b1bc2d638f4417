#include "tests/simulation/world/fiber.h"

#include <cstdint>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BATCHWRIGHT_FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BATCHWRIGHT_FIBER_ASAN 1
#endif
#if defined(BATCHWRIGHT_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace batchwright::simulation {
namespace {

/// With AddressSanitizer frames are several times as large.
constexpr std::size_t kStackBytes = 512 * 1024;

/// Stacks that were used before: their pages are there.
std::vector<std::unique_ptr<std::byte[]>>& idle_stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> stacks;
  return stacks;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  if (idle_stacks().empty()) {
    stack_.reset(new std::byte[kStackBytes]);  // not zeroed
  } else {
    stack_ = std::move(idle_stacks().back());
    idle_stacks().pop_back();
  }
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext() takes a function of any ints.
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(self >> 32));
}

Fiber::~Fiber() { idle_stacks().push_back(std::move(stack_)); }

void Fiber::enter(unsigned low, unsigned high) {
  const auto self = std::uintptr_t{low} | (std::uintptr_t{high} << 32);
  reinterpret_cast<Fiber*>(self)->run();
}

void Fiber::run() {
#if defined(BATCHWRIGHT_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &outer_stack_, &outer_bytes_);
#endif
  try {
    body_();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  ended_ = true;
#if defined(BATCHWRIGHT_FIBER_ASAN)
  __sanitizer_start_switch_fiber(nullptr, outer_stack_, outer_bytes_);
#endif
  setcontext(&outside_);
}

void Fiber::resume() {
#if defined(BATCHWRIGHT_FIBER_ASAN)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_.get(), kStackBytes);
#endif
  swapcontext(&outside_, &inside_);
#if defined(BATCHWRIGHT_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Fiber::yield() {
#if defined(BATCHWRIGHT_FIBER_ASAN)
  __sanitizer_start_switch_fiber(&fake_stack_, outer_stack_, outer_bytes_);
#endif
  swapcontext(&inside_, &outside_);
#if defined(BATCHWRIGHT_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack_, &outer_stack_, &outer_bytes_);
#endif
}

}  // namespace batchwright::simulation
