#include "storage/features/sound/files/mp3_side.h"

#include <fmt/core.h>

#include <array>

// The side information of layer 3 (ISO/IEC 11172-3 2.4.1.7, 13818-3 2.4.1.7): how far back the
// coded sound begins, and for each granule and channel how many bits it has and how they are read.
// The checksum, where there is one, is a CRC-16 (polynomial 0x8005, begun with ones, highest bit
// first) of the head's last two bytes and of the side information.

namespace batchwright {
namespace {

class SideBits {
 public:
  explicit SideBits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint32_t take(std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i, ++at_) {
      const std::uint32_t byte =
          at_ / 8 < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[at_ / 8]) : 0;
      value = value << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

std::uint32_t mp3_crc(std::span<const std::byte> bytes, std::uint32_t crc) {
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x8005 : 0)) & 0xFFFF;
    }
  }
  return crc;
}

bool has_its_crc(const Mp3Head& head, std::span<const std::byte> frame) {
  if (!head.has_crc) return true;
  const std::uint32_t of_head = mp3_crc(frame.subspan(2, 2), 0xFFFF);
  const std::uint32_t crc = mp3_crc(frame.subspan(head.side_at(), head.side_bytes()), of_head);
  return SideBits(frame.subspan(Mp3Head::kBytes, 2)).take(16) == crc;
}

}  // namespace

std::optional<Mp3Head> mp3_head(std::span<const std::byte> bytes) {
  if (bytes.size() < Mp3Head::kBytes) return std::nullopt;
  const auto byte = [&bytes](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  if (byte(0) != 0xFF || (byte(1) & 0xE0) != 0xE0) return std::nullopt;
  Mp3Head head;
  head.version = byte(1) >> 3 & 3;
  head.layer = 4 - (byte(1) >> 1 & 3);
  const std::uint32_t bit_rate = byte(2) >> 4;
  const std::uint32_t rate = byte(2) >> 2 & 3;
  if (head.version == 1 || head.layer == 4 || bit_rate == 15 || rate == 3) return std::nullopt;
  constexpr std::array<std::uint32_t, 3> kRates = {44100, 48000, 32000};
  head.rate = kRates[rate] >> (head.version == 3 ? 0 : head.version == 2 ? 1 : 2);
  head.channels = byte(3) >> 6 == 3 ? 1 : 2;
  head.has_crc = (byte(1) & 1) == 0;
  constexpr std::array<std::uint32_t, 15> kOfMpeg1 = {0,   32,  40,  48,  56,  64,  80, 96,
                                                      112, 128, 160, 192, 224, 256, 320};
  constexpr std::array<std::uint32_t, 15> kOfMpeg2 = {0,  8,  16, 24,  32,  40,  48, 56,
                                                      64, 80, 96, 112, 128, 144, 160};
  const bool is_first = head.version == 3;
  const std::uint32_t kilobits = (is_first ? kOfMpeg1 : kOfMpeg2)[bit_rate];
  const std::uint32_t padding = byte(2) >> 1 & 1;
  if (kilobits > 0) head.bytes = (is_first ? 144'000 : 72'000) * kilobits / head.rate + padding;
  return head;
}

Mp3Side mp3_side(const Mp3Head& head, std::span<const std::byte> bytes) {
  const std::size_t begin = head.side_at();
  const std::size_t end = begin + head.side_bytes();
  if (bytes.size() < end || head.bytes < end) return {0, "its side information is cut"};
  if (!has_its_crc(head, bytes)) return {0, "its checksum differs"};
  SideBits bits(bytes.subspan(begin, head.side_bytes()));
  const bool is_first = head.version == 3;
  Mp3Side side;
  side.back = bits.take(is_first ? 9 : 8);
  // Private bits, and in MPEG 1 which scale factors both granules share: 4 bits a channel.
  bits.take(is_first ? (head.channels == 1 ? 5 + 4 : 3 + 8) : head.channels);
  std::uint64_t needed = 0;
  for (std::uint32_t part = 0; part < head.channels * (is_first ? 2 : 1); ++part) {
    needed += bits.take(12);
    constexpr std::uint32_t kMostPairs = 288;  // of the 576 samples of a granule
    const std::uint32_t pairs = bits.take(9);
    if (pairs > kMostPairs) {
      side.fault = fmt::format("{} pairs of values; allowed: up to {}", pairs, kMostPairs);
    }
    bits.take(8 + (is_first ? 4 : 9));  // gain, and how scale factors are coded
    const bool switches = bits.take(1) == 1;
    const std::uint32_t block = bits.take(2);
    if (switches && block == 0) side.fault = "it switches to a window that there is not";
    bits.take(20 + (is_first ? 3 : 2));
  }
  const std::uint64_t there = 8 * (side.back + head.bytes - end);
  if (needed > there) side.fault = fmt::format("it has {} bits of sound of {}", there, needed);
  return side;
}

}  // namespace batchwright
