#include "formats/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

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
  // The quiet NaN: all ones in the exponent, and the highest bit of the mantissa.
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
  // A carry beyond the greatest number makes the mantissa 0 and the exponent infinity's.
  return sign | std::min(above + mantissa, infinity);
}

template <class T>
std::uint64_t saturated(double value) {
  using Limits = std::numeric_limits<T>;
  T rounded = 0;
  // Compared as doubles: the conversion of a number out of range is undefined behaviour.
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

template <class T>
std::pair<double, double> range_of() {
  return {static_cast<double>(std::numeric_limits<T>::lowest()),
          static_cast<double>(std::numeric_limits<T>::max())};
}

/// The least and the greatest value that a dtype can hold.
std::pair<double, double> range_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return range_of<float>();
    // The greatest finite numbers: (2 - 2^-10) * 2^15, and below that (2 - 2^-7) * 2^127.
    case DType::float16: return {-65504.0, 65504.0};
    case DType::bfloat16: return {-0x1.FEp127, 0x1.FEp127};
    // The greatest double below 2^63: 2^63 itself is no int64.
    case DType::int64: return {-0x1p63, 0x1.FFFFFFFFFFFFFp62};
    case DType::int32: return range_of<std::int32_t>();
    case DType::int16: return range_of<std::int16_t>();
    case DType::uint8: return range_of<std::uint8_t>();
    case DType::none: break;
  }
  return {0.0, 0.0};
}

bool is_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

/// A float is NaN or infinite when its exponent's bits are all ones.
template <class Word>
std::optional<std::size_t> first_full_exponent(std::span<const std::byte> bytes, Word exponent) {
  constexpr std::size_t kBlock = 64;  // words that are looked at together, as one vector or some
  const std::size_t count = bytes.size() / sizeof(Word);
  std::array<Word, kBlock> words;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t here = std::min(kBlock, count - first);
    words.fill(0);
    std::memcpy(words.data(), bytes.data() + first * sizeof(Word), here * sizeof(Word));
    Word full = 0;
    for (const Word word : words) full |= static_cast<Word>((word & exponent) == exponent ? 1 : 0);
    if (full == 0) continue;
    const auto is_full = [exponent](Word word) { return (word & exponent) == exponent; };
    return first + static_cast<std::size_t>(std::find_if(words.begin(), words.end(), is_full) -
                                            words.begin());
  }
  return std::nullopt;
}

template <class Number>
std::int64_t read_as(std::span<const std::byte> element) {
  Number number = 0;
  std::memcpy(&number, element.data(), sizeof number);
  return number;
}

}  // namespace

NumberBytes number_bytes(DType dtype, double value) {
  NumberBytes element;
  element.bytes = dtype_bytes(dtype);
  std::uint64_t bits = bits_of(dtype, value);
  // Little-endian, as tensors are.
  for (std::size_t i = 0; i < element.bytes; ++i, bits >>= 8) {
    element.element[i] = static_cast<std::byte>(bits & 0xFF);
  }
  return element;
}

std::optional<std::int64_t> whole_number(DType dtype, std::span<const std::byte> element) {
  switch (dtype) {
    case DType::int64: return read_as<std::int64_t>(element);
    case DType::int32: return read_as<std::int32_t>(element);
    case DType::int16: return read_as<std::int16_t>(element);
    case DType::uint8: return read_as<std::uint8_t>(element);
    default: return std::nullopt;
  }
}

std::optional<std::size_t> first_not_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::float32: return first_full_exponent<std::uint32_t>(bytes, 0x7F80'0000);
    case DType::float16: return first_full_exponent<std::uint16_t>(bytes, 0x7C00);
    case DType::bfloat16: return first_full_exponent<std::uint16_t>(bytes, 0x7F80);
    default: return std::nullopt;
  }
}

std::string refused_number(DType dtype, double value) {
  const auto [least, greatest] = range_of(dtype);
  const bool whole = !is_float(dtype);
  // Written so that NaN fails.
  const bool fits = value >= least && value <= greatest;
  if (fits && (!whole || value == std::nearbyint(value))) return {};
  return fmt::format("found {}; allowed: {} from {} to {}, which {} can hold", value,
                     whole ? "a whole number" : "a number", least, greatest, dtype_name(dtype));
}

}  // namespace batchwright
