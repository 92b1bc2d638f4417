#include "tests/planning/counted_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::int64_t held = 0;
std::int64_t most_held = 0;
std::int64_t held_before = 0;

/// Blocks that were allocated elsewhere are counted when they are freed too, but are small.
void count(std::int64_t bytes) {
  held += bytes;
  most_held = std::max(most_held, held);
}

std::int64_t size_of(void* block) {
  return block == nullptr ? 0 : static_cast<std::int64_t>(malloc_usable_size(block));
}

}  // namespace

// The linker gives calls of realloc the first name, and what they would have called the second; so
// for the others. A compiler may turn realloc of nothing into malloc.
extern "C" void* __real_malloc(std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
extern "C" void* __real_realloc(void* block,
                                std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
extern "C" void __real_free(void* block);            // NOLINT(bugprone-reserved-identifier)

// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void* __wrap_malloc(std::size_t bytes) {
  void* block = __real_malloc(bytes);
  count(size_of(block));
  return block;
}

// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void* __wrap_realloc(void* block, std::size_t bytes) {
  const std::int64_t before = size_of(block);
  void* moved = __real_realloc(block, bytes);
  if (moved != nullptr) count(size_of(moved) - before);
  return moved;
}

// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __wrap_free(void* block) {
  count(-size_of(block));
  __real_free(block);
}

void* operator new(std::size_t bytes) {
  void* block = std::malloc(std::max<std::size_t>(bytes, 1));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace batchwright::testing {

void begin_counting() { held_before = most_held = held; }
std::size_t counted_peak_bytes() { return static_cast<std::size_t>(most_held - held_before); }
std::size_t counted_kept_bytes() {
  return static_cast<std::size_t>(std::max<std::int64_t>(held - held_before, 0));
}

}  // namespace batchwright::testing
