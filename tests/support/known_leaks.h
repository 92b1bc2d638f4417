#pragma once

// Of LeakSanitizer, where that is linked.
extern "C" void __lsan_disable() __attribute__((weak));
extern "C" void __lsan_enable() __attribute__((weak));

namespace batchwright::test {

/// While it lives nothing counts as leaked: what LMDB holds when a caught fault leaves it is lost.
struct LeaksAreKnown {
  LeaksAreKnown() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksAreKnown() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  LeaksAreKnown(const LeaksAreKnown&) = delete;
  LeaksAreKnown& operator=(const LeaksAreKnown&) = delete;
};

}  // namespace batchwright::test
