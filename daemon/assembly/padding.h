#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The value behind a row's real frames, by the name of the field; 0 in a field that is not named.
using PaddingValues = std::map<std::string, double, std::less<>>;

/// The value for one field.
double padding_value(const PaddingValues& values, const FieldSpec& field);

/// Whether each value belongs to a field that can have padding, and can be stored in it: finite; in
/// an integer a whole number within its range, in a float one that does not become infinite.
/// Errors: bad_configuration, with field, value and what is allowed.
Result<void> check_padding(const PaddingValues& values, const Schema& schema);

/// The value that padding consists of, as one element of a tensor.
struct Padding {
  std::array<std::byte, 8> element{};
  std::size_t bytes = 1;  ///< Bytes of the element.
};

/// `value` in `dtype`: floats are rounded to the nearest even, and become infinite when too
/// large; integers are rounded, and clamped to their range; NaN is 0 in an integer.
Padding padding_of(DType dtype, double value);

}  // namespace batchwright
