#include "formats/base/bytes/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace batchwright {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  // The library's length is an int, and it leaves the inversions to its caller.
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const std::size_t now = std::min(bytes.size(), kMostAtOnce);
    // Not written to: the parameter lacks a const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(now), crc);
    bytes = bytes.subspan(now);
  }
  return ~crc;
}

}  // namespace batchwright
