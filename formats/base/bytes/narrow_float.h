#pragma once

#include <bit>
#include <cstdint>

namespace batchwright {

// The bits of a float32 in a narrower float: rounded to the nearest, ties to even, subnormals kept.
// A NaN stays one, quiet and with its sign; what is too large becomes infinite.

constexpr std::uint16_t to_float16(std::uint32_t bits) {
  constexpr std::uint32_t kInfinity = 0x7F80'0000;
  constexpr std::uint32_t kTooLarge = 0x477F'F000;  // 65,520: half a last bit above the greatest
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
  std::uint32_t cast = 0;
  if (magnitude > kInfinity) {
    cast = 0x7E00 | (magnitude >> 13 & 0x3FF);
  } else if (magnitude >= kTooLarge) {
    cast = 0x7C00;
  } else if (magnitude >= 0x3880'0000) {
    // Normal: the exponent's bias becomes 15, and 13 bits of the mantissa go.
    cast = (magnitude - (112U << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  } else {
    // Subnormal: the last bit of a number from 0.5 to 1 is worth that of a subnormal float16, so
    // the sum is rounded where it has to be.
    constexpr float kHalf = 0.5F;
    cast = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kHalf) -
           std::bit_cast<std::uint32_t>(kHalf);
  }
  return static_cast<std::uint16_t>(sign | cast);
}

constexpr std::uint16_t to_bfloat16(std::uint32_t bits) {
  if ((bits & 0x7FFF'FFFF) > 0x7F80'0000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace batchwright
