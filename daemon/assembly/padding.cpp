#include "daemon/assembly/padding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace batchwright {
namespace {

/// Width of the fields of an IEEE-like binary float.
struct FloatBits {
  int exponent;
  int mantissa;
};

/// The bits of `value` in a narrower float. One rounding, so that no double rounding can happen.
std::uint64_t narrowed(double value, FloatBits to) {
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << (to.exponent + to.mantissa);
  const std::uint64_t infinity = ((std::uint64_t{1} << to.exponent) - 1) << to.mantissa;
  if (std::isnan(value)) return infinity | std::uint64_t{1} << (to.mantissa - 1);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0.0) return sign;
  const int lowest = 2 - (1 << (to.exponent - 1));  // exponent of the smallest normal number
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, lowest);
  // The leading 1 of a normal mantissa, and a carry out of it, add 1 to the exponent's field.
  const auto mantissa = static_cast<std::uint64_t>(
      std::nearbyint(std::ldexp(std::fabs(value), to.mantissa - exponent)));
  const auto above = static_cast<std::uint64_t>(exponent - lowest) << to.mantissa;
  return sign | std::min(above + mantissa, infinity);
}

template <class T>
std::uint64_t saturated(double value) {
  using Limits = std::numeric_limits<T>;
  T rounded = 0;
  if (value >= static_cast<double>(Limits::max())) {
    rounded = Limits::max();
  } else if (value <= static_cast<double>(Limits::min())) {
    rounded = Limits::min();
  } else if (!std::isnan(value)) {
    rounded = static_cast<T>(std::nearbyint(value));
  }
  return static_cast<std::uint64_t>(rounded);
}

std::uint64_t bits_of(DType dtype, double value) {
  switch (dtype) {
    case DType::float32: return narrowed(value, {8, 23});
    case DType::float16: return narrowed(value, {5, 10});
    case DType::bfloat16: return narrowed(value, {8, 7});
    case DType::int64: return saturated<std::int64_t>(value);
    case DType::int32: return saturated<std::int32_t>(value);
    case DType::int16: return saturated<std::int16_t>(value);
    case DType::uint8: return saturated<std::uint8_t>(value);
    case DType::none: break;
  }
  return 0;
}

}  // namespace

Padding padding_of(DType dtype, double value) {
  Padding padding;
  padding.bytes = dtype_bytes(dtype);
  std::uint64_t bits = bits_of(dtype, value);
  for (std::size_t i = 0; i < padding.bytes; ++i, bits >>= 8) {
    padding.element[i] = static_cast<std::byte>(bits & 0xFF);
  }
  return padding;
}

void fill(std::span<std::byte> to, const Padding& padding) {
  if (to.empty()) return;
  const std::span element(padding.element.data(), padding.bytes);
  if (std::all_of(element.begin(), element.end(), [&](std::byte b) { return b == element[0]; })) {
    std::memset(to.data(), static_cast<int>(element[0]), to.size());
    return;
  }
  // One element, then what is there once more, and again: memcpy does the work in few calls.
  std::memcpy(to.data(), element.data(), element.size());
  for (std::size_t done = element.size(); done < to.size();) {
    const std::size_t more = std::min(done, to.size() - done);
    std::memcpy(to.data() + done, to.data(), more);
    done += more;
  }
}

}  // namespace batchwright
