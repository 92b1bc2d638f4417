#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "formats/formats.h"

namespace batchwright {

/// The value that padding consists of, as one element of a tensor.
struct Padding {
  std::array<std::byte, 8> element{};
  std::size_t bytes = 1;  ///< Of the element.
};

/// `value` in `dtype`: floats are rounded to the nearest even, and become infinite when too
/// large; integers are rounded, and clamped to their range; NaN is 0 in an integer.
Padding padding_of(DType dtype, double value);

/// Fills `to`, whole elements long, with the padding.
void fill(std::span<std::byte> to, const Padding& padding);

}  // namespace batchwright
