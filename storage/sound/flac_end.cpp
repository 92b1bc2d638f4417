#include "storage/sound/flac_end.h"

#include <array>
#include <cstdint>

// A frame begins with the sync code, 14 bits 11111111111110 and a 0, and ends with the CRC-16 of
// all bytes before it: polynomial 0x8005, begun with 0, highest bit first (RFC 9639).

namespace batchwright {
namespace {

constexpr std::array<std::uint16_t, 256> crc_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x8005 : 0);
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

std::uint16_t crc16(std::span<const std::byte> bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = 0;
  for (const std::byte byte : bytes) {
    crc = (crc << 8 & 0xFFFF) ^ kTable[(crc >> 8 ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace

bool ends_with_flac_frame(std::span<const std::byte> tail) {
  constexpr std::size_t kLeastFrame = 8;  // header 6, CRC 2, and samples
  // From the shortest on: the sync code may stand within samples, which the CRC then rules out.
  for (std::size_t bytes = kLeastFrame; bytes <= tail.size(); ++bytes) {
    const auto frame = tail.last(bytes);
    if (frame[0] != std::byte{0xFF} || (frame[1] & std::byte{0xFE}) != std::byte{0xF8}) continue;
    // The CRC of a frame with its own CRC behind it is 0.
    if (crc16(frame) == 0) return true;
  }
  return false;
}

}  // namespace batchwright
