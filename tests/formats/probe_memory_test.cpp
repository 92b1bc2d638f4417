#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: memory that the system gives is there, be it much or none") {
  CHECK(probe_memory(0, 16, "a plan"));
  CHECK(probe_memory(1'000'000, 16, "a plan"));
}

TEST_CASE("formats: memory that no system gives is lacking, however its count is overflown") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count : {std::uint64_t{1} << 58, (kMost / 16) + 1, kMost}) {
    const auto there = probe_memory(count, 16, "a plan");
    REQUIRE_FALSE(there);
    CHECK(there.error().code == ErrorCode::busy);
    CHECK(there.error().message == "no memory for a plan of " + std::to_string(count) +
                                       " sequences, which takes 16 bytes each: Cannot allocate "
                                       "memory");
  }
}
