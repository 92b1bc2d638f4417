#include <boost/crc.hpp>

#include "formats/base/bytes/checksum.h"

// Of a minimal build: by a table of 256 entries, without instructions of a processor.

namespace batchwright {
namespace {

std::uint32_t reversed(std::uint32_t bits) {
  std::uint32_t out = 0;
  for (int i = 0; i < 32; ++i, bits >>= 1) out = out << 1 | (bits & 1U);
  return out;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  constexpr std::uint32_t kCastagnoli = 0x1EDC6F41;
  // It takes the remainder to begin with as it is before the reflection.
  boost::crc_optimal<32, kCastagnoli, 0, 0xFFFFFFFF, true, true> sum(reversed(~crc));
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

}  // namespace batchwright
