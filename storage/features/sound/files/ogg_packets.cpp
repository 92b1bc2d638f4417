#include <algorithm>
#include <array>
#include <bit>

#include "storage/features/sound/files/ogg.h"

namespace batchwright {
namespace {

/// Bits of a packet of Vorbis, backwards from its last one: within a byte the lowest is the first.
class BackwardBits {
 public:
  explicit BackwardBits(std::span<const std::byte> bytes)
      : bytes_(bytes), left_(bytes.size() * 8) {}

  std::size_t left() const { return left_; }
  bool bit() { return bit_at(--left_); }
  /// The last `count` bits as the number that they are; they are not taken.
  std::uint32_t peek(std::size_t count) const {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < count; ++i) {
      number |= static_cast<std::uint32_t>(bit_at(left_ - count + i)) << i;
    }
    return number;
  }
  std::uint32_t take(std::size_t count) {
    const std::uint32_t number = peek(count);
    left_ -= count;
    return number;
  }

 private:
  bool bit_at(std::size_t at) const {
    return (std::to_integer<std::uint32_t>(bytes_[at / 8]) >> at % 8 & 1) != 0;
  }

  std::span<const std::byte> bytes_;
  std::size_t left_;
};

}  // namespace

void VorbisPackets::take(std::span<const std::byte> packet) {
  samples_ = 0;
  if (headers_ < kHeaders) {
    constexpr std::size_t kBlockSizes = 28;  // the place of both exponents in the first header
    if (headers_ == 0 && packet.size() > kBlockSizes) {
      const auto sizes = std::to_integer<std::uint32_t>(packet[kBlockSizes]);
      blocks_[0] = 1U << (sizes & 15);
      blocks_[1] = 1U << (sizes >> 4);
    }
    if (++headers_ == kHeaders) read_modes(packet);
    return;
  }
  if (is_long_.empty() || packet.empty()) return;
  const auto first = std::to_integer<std::uint32_t>(packet[0]);
  if ((first & 1) != 0) return;  // no sound
  const auto bits = std::bit_width(is_long_.size() - 1);
  const std::size_t mode = first >> 1 & ((1U << bits) - 1);
  if (mode >= is_long_.size()) return;
  const std::uint32_t block = blocks_[is_long_[mode] ? 1 : 0];
  if (before_ > 0) samples_ = before_ / 4 + block / 4;
  before_ = block;
}

/// The last header ends with the modes: 6 bits of how many less one, then for each a bit (whether
/// its blocks are long), 16 and 16 bits that are 0, 8 of a mapping; and a last bit of 1. All before
/// them is codebooks, so that they are read from the end.
void VorbisPackets::read_modes(std::span<const std::byte> setup) {
  constexpr std::size_t kModeBits = 41;
  constexpr std::size_t kCountBits = 6;
  constexpr std::size_t kMostModes = 64;
  BackwardBits bits(setup);
  while (bits.left() > 0 && !bits.bit()) {
  }
  std::vector<bool> seen;  // the last mode first
  while (seen.size() < kMostModes && bits.left() >= kModeBits + kCountBits) {
    bits.take(8);
    if (bits.take(16) != 0 || bits.take(16) != 0) break;
    seen.push_back(bits.bit());
    // Of several counts that fit the last one is the farthest from chance.
    if (bits.peek(kCountBits) + 1 == seen.size()) is_long_ = seen;
  }
  std::reverse(is_long_.begin(), is_long_.end());
}

std::uint64_t opus_samples(std::span<const std::byte> packet) {
  if (packet.empty()) return 0;
  const auto toc = std::to_integer<std::uint32_t>(packet[0]);
  const std::uint32_t config = toc >> 3;
  constexpr std::array<std::uint64_t, 4> kSilk = {480, 960, 1920, 2880};
  const std::uint64_t frame = config < 12   ? kSilk[config & 3]
                              : config < 16 ? std::uint64_t{480} << (config & 1)
                                            : std::uint64_t{120} << (config & 3);
  const std::uint32_t code = toc & 3;
  if (code == 0) return frame;
  if (code < 3) return 2 * frame;
  return packet.size() < 2 ? 0 : frame * (std::to_integer<std::uint32_t>(packet[1]) & 63);
}

}  // namespace batchwright
