#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/schema.h"

namespace batchwright {

/// A number as one element of a tensor.
struct NumberBytes {
  std::array<std::byte, 8> element{};
  std::size_t bytes = 1;  ///< Bytes of the element.
};

/// `value` in `dtype`: floats are rounded to the nearest even, and become infinite when too
/// large; integers are rounded, and clamped to their range; NaN is 0 in an integer.
NumberBytes number_bytes(DType dtype, double value);

/// The whole number that `element` is, of dtype_bytes(dtype) at any address; empty for floats.
std::optional<std::int64_t> whole_number(DType dtype, std::span<const std::byte> element);

/// Where the first of the numbers in `bytes` stands that is NaN or infinite, as its place among
/// them; empty when all are finite, and for integers. Any alignment. Runs at the speed of memory.
std::optional<std::size_t> first_not_finite(DType dtype, std::span<const std::byte> bytes);

/// What is wrong with a number that `dtype` cannot hold as it is: it is not finite, not whole, or
/// out of range. Empty for one that it can.
std::string refused_number(DType dtype, double value);

}  // namespace batchwright
