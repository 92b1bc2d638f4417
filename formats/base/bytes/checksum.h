#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace batchwright {

/// CRC-32C (Castagnoli) of `bytes`, continued from `crc`; 0 to begin. Threads: any.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace batchwright
