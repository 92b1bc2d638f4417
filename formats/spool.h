#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/base/base.h"
#include "spool_generated.h"

// What a live feed's spool is made of. The room of live feeds has what the tables hold.

namespace batchwright {

inline constexpr const char* kSpoolTables[] = {"head",   "sequences", "steps",   "marks",
                                               "groups", "producers", "outcomes"};
/// Their places there.
inline constexpr std::size_t kSpoolHead = 0, kSpoolSequences = 1, kSpoolSteps = 2, kSpoolMarks = 3,
                             kSpoolGroups = 4, kSpoolProducers = 5, kSpoolOutcomes = 6;

/// Flags of SpoolRow.
inline constexpr std::uint32_t kSpoolZeroed = 1, kSpoolFiller = 2, kSpoolLeaves = 4,
                               kSpoolReset = 8, kSpoolLast = 16;

/// Outcomes are kept in chunks of so many numbers.
inline constexpr std::uint64_t kSpoolChunk = 256;

/// The key of the chunk with this number.
constexpr std::uint64_t spool_chunk_key(std::uint32_t producer, std::uint64_t number) {
  return std::uint64_t{producer} << 40U | number / kSpoolChunk;
}
constexpr std::uint32_t producer_of_chunk(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 40U);
}
constexpr std::uint64_t first_of_chunk(std::uint64_t key) {
  return (key & ((std::uint64_t{1} << 40U) - 1)) * kSpoolChunk;
}

/// The checksum that follows a value, of its key and its bytes. Sequences have that of their
/// record.
inline std::uint32_t spool_crc(std::uint64_t key, std::span<const std::byte> value) {
  return crc32c(value, crc32c(std::as_bytes(std::span(&key, 1))));
}

}  // namespace batchwright
