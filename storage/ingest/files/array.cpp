#include "storage/ingest/files/array.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace batchwright {
namespace {

struct Row {
  Element element;
  std::string_view name;
  std::size_t bytes;
  std::optional<DType> stored;
};
constexpr std::array kRows = {Row{Element::float64, "float64", 8, std::nullopt},
                              Row{Element::float32, "float32", 4, DType::float32},
                              Row{Element::float16, "float16", 2, DType::float16},
                              Row{Element::int64, "int64", 8, DType::int64},
                              Row{Element::int32, "int32", 4, DType::int32},
                              Row{Element::int16, "int16", 2, DType::int16},
                              Row{Element::int8, "int8", 1, std::nullopt},
                              Row{Element::uint64, "uint64", 8, std::nullopt},
                              Row{Element::uint32, "uint32", 4, std::nullopt},
                              Row{Element::uint16, "uint16", 2, std::nullopt},
                              Row{Element::uint8, "uint8", 1, DType::uint8}};

/// The table is in the order of the enumeration.
const Row& row_of(Element element) { return kRows[static_cast<std::size_t>(element)]; }

/// An IEEE half: 1 sign bit, 5 of exponent (bias 15), 10 of fraction.
enum class Half : std::uint16_t {};

double to_double(Half half) {
  const auto bits = static_cast<unsigned>(half);
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const double fraction = bits & 1023U;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  // Subnormal: no hidden bit, and steps of 2^-24.
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

/// Rounded to the nearest, ties to even. Nothing: finite, and too large.
std::optional<Half> to_half(double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0;
  // The quiet NaN: its payload is not kept.
  if (std::isnan(value)) return Half{0x7E00};
  if (std::isinf(value)) return static_cast<Half>(sign | 0x7C00U);
  const double size = std::fabs(value);
  if (size >= 65520) return std::nullopt;  // would round to 65536
  // Below 2^-14 halves are subnormal: their steps stay those of 2^-14.
  const int exponent = size < std::ldexp(1.0, -14) ? -14 : std::ilogb(size);
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // 1024 steps and more are normal, and one too many carries into the exponent as it should.
  return static_cast<Half>(sign | (static_cast<unsigned>(exponent + 14) * 1024U + steps));
}

template <class T>
T load_one(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Calls `use` with element `i` as a double, an int64 or a uint64, each of which is exact.
template <class Use>
auto with_element(const Array& array, std::size_t i, Use use) {
  const std::byte* at = array.bytes.data() + i * element_bytes(array.element);
  switch (array.element) {
    case Element::float64: return use(load_one<double>(at));
    case Element::float32: return use(double{load_one<float>(at)});
    case Element::float16: return use(to_double(load_one<Half>(at)));
    case Element::int64: return use(load_one<std::int64_t>(at));
    case Element::int32: return use(std::int64_t{load_one<std::int32_t>(at)});
    case Element::int16: return use(std::int64_t{load_one<std::int16_t>(at)});
    case Element::int8: return use(std::int64_t{load_one<std::int8_t>(at)});
    case Element::uint64: return use(load_one<std::uint64_t>(at));
    case Element::uint32: return use(std::int64_t{load_one<std::uint32_t>(at)});
    case Element::uint16: return use(std::int64_t{load_one<std::uint16_t>(at)});
    case Element::uint8: break;
  }
  return use(std::int64_t{load_one<std::uint8_t>(at)});
}

/// Writes the value as `To`. False when `To` does not hold it; floats are not cast to integers.
template <std::integral To, class From>
bool put_one(From value, std::byte* to) {
  if constexpr (std::floating_point<From>) {
    return false;
  } else {
    if (!std::in_range<To>(value)) return false;
    const To cast_value = static_cast<To>(value);
    std::memcpy(to, &cast_value, sizeof cast_value);
    return true;
  }
}

template <std::same_as<float> To, class From>
bool put_one(From value, std::byte* to) {
  const auto wide = static_cast<double>(value);
  // Clamped first: converting a double beyond a float's range is undefined behaviour in C++.
  const auto narrow = static_cast<float>(std::clamp(wide, -1e39, 1e39));
  if (std::isfinite(wide) && !std::isfinite(narrow)) return false;
  // Infinity, which was clamped above, stays what it is.
  const float kept = std::isfinite(wide) ? narrow : static_cast<float>(wide);
  std::memcpy(to, &kept, sizeof kept);
  return true;
}

template <std::same_as<Half> To, class From>
bool put_one(From value, std::byte* to) {
  const auto half = to_half(static_cast<double>(value));
  if (half) std::memcpy(to, &*half, sizeof *half);
  return half.has_value();
}

/// Where element `i` stands: "[3, 17]".
std::string place(const Array& array, std::size_t i) {
  std::vector<std::uint64_t> at(array.shape.size());
  for (std::size_t d = array.shape.size(); d-- > 0;) {
    // Row-major: the last index runs fastest.
    at[d] = i % array.shape[d];
    i /= array.shape[d];
  }
  return fmt::format("[{}]", fmt::join(at, ", "));
}

template <class To>
Result<Array> cast_to(const Array& array, Element to) {
  const std::size_t count = array.bytes.size() / element_bytes(array.element);
  Array made{to, array.shape, std::vector<std::byte>(count * sizeof(To)), array.remark};
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const into = made.bytes.data() + i * sizeof(To);
    const bool fits =
        with_element(array, i, [into](auto value) { return put_one<To>(value, into); });
    if (fits) continue;
    const std::string value =
        with_element(array, i, [](auto number) { return fmt::format("{}", number); });
    return Error{ErrorCode::schema_mismatch, fmt::format("element {} is {}, which {} does not hold",
                                                         place(array, i), value, element_name(to))};
  }
  return made;
}

}  // namespace

std::size_t element_bytes(Element element) { return row_of(element).bytes; }
std::string_view element_name(Element element) { return row_of(element).name; }
bool is_float(Element element) { return element <= Element::float16; }
std::optional<DType> stored_as(Element element) { return row_of(element).stored; }

std::optional<std::uint64_t> array_bytes(Element element, const std::vector<std::uint64_t>& shape) {
  // Any extent of 0 makes all 0, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::uint64_t bytes = element_bytes(element);
  for (const std::uint64_t extent : shape) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

std::vector<std::byte> from_fortran_order(const Array& array) {
  const std::size_t size = element_bytes(array.element);
  std::vector<std::byte> ordered(array.bytes.size());
  std::vector<std::uint64_t> at(array.shape.size());
  for (std::size_t to = 0; to < ordered.size(); to += size) {
    std::size_t from = 0;
    // Fortran order is the other way round: the first index runs fastest.
    for (std::size_t d = at.size(); d-- > 0;) from = from * array.shape[d] + at[d];
    std::memcpy(ordered.data() + to, array.bytes.data() + from * size, size);
    // The last index runs fastest in C order.
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == array.shape[d];) at[d] = 0;
  }
  return ordered;
}

Result<Array> cast(Array array, DType to) {
  if (stored_as(array.element) == to) return array;
  if (is_float(array.element) && to > DType::bfloat16) {
    return Error{ErrorCode::schema_mismatch,
                 fmt::format("{} is not cast to {}; allowed: float32 or float16",
                             element_name(array.element), dtype_name(to))};
  }
  switch (to) {
    case DType::float32: return cast_to<float>(array, Element::float32);
    case DType::float16: return cast_to<Half>(array, Element::float16);
    case DType::int64: return cast_to<std::int64_t>(array, Element::int64);
    case DType::int32: return cast_to<std::int32_t>(array, Element::int32);
    case DType::int16: return cast_to<std::int16_t>(array, Element::int16);
    case DType::uint8: return cast_to<std::uint8_t>(array, Element::uint8);
    default: break;
  }
  return Error{ErrorCode::schema_mismatch, fmt::format("nothing is cast to {}", dtype_name(to))};
}

std::optional<std::string> not_finite(const Array& array) {
  if (!is_float(array.element)) return std::nullopt;
  const std::size_t count = array.bytes.size() / element_bytes(array.element);
  for (std::size_t i = 0; i < count; ++i) {
    const double value =
        with_element(array, i, [](auto number) { return static_cast<double>(number); });
    if (!std::isfinite(value)) return fmt::format("element {} is {}", place(array, i), value);
  }
  return std::nullopt;
}

std::string describe(const Array& array) {
  return fmt::format("{} [{}]", element_name(array.element), fmt::join(array.shape, ", "));
}

}  // namespace batchwright
