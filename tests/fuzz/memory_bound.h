#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz.h"

#if defined(__SANITIZE_ADDRESS__)
#define BATCHWRIGHT_FUZZ_COUNTS_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BATCHWRIGHT_FUZZ_COUNTS_MEMORY 1
#endif
#endif

#ifdef BATCHWRIGHT_FUZZ_COUNTS_MEMORY
#include <sanitizer/allocator_interface.h>
#endif

namespace batchwright::fuzz {

/// Aborts where memory that is allocated during its life, less what is freed, passes a bound; also
/// what libraries without sanitizers allocate. Without ASan nothing is counted.
/// One at a time. Threads: any may allocate.
class MemoryBound {
 public:
  explicit MemoryBound(std::int64_t most_bytes) {
    install();
    live_ = 0;
    most_ = most_bytes;
  }
  ~MemoryBound() { most_ = INT64_MAX; }
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;

 private:
  static void install() {
#ifdef BATCHWRIGHT_FUZZ_COUNTS_MEMORY
    // Hooks cannot be taken out again.
    static const bool installed =
        __sanitizer_install_malloc_and_free_hooks(&allocated, &freed) != 0;
    require(installed, "allocations can be counted");
#endif
  }
  static void allocated(const volatile void*, std::size_t bytes) {
    const auto size = static_cast<std::int64_t>(bytes);
    if ((live_ += size) > most_) {
      most_ = INT64_MAX;  // what the report allocates is no fault
      require(false, "memory stays within its bound");
    }
  }
#ifdef BATCHWRIGHT_FUZZ_COUNTS_MEMORY
  static void freed(const volatile void* place) {
    live_ -=
        static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(place)));
  }
#endif

  static inline std::atomic<std::int64_t> live_{0};
  static inline std::atomic<std::int64_t> most_{INT64_MAX};
};

}  // namespace batchwright::fuzz
