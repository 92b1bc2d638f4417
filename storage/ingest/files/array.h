#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Element types of foreign arrays: those that a dataset holds, and those that have to be cast.
enum class Element : std::uint8_t {
  float64,
  float32,
  float16,
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
};

std::size_t element_bytes(Element element);
std::string_view element_name(Element element);  ///< "float64" and so on.
bool is_float(Element element);
/// The same type as a dataset's; nothing for one that no dataset holds.
std::optional<DType> stored_as(Element element);

/// A foreign array in this machine's memory. `bytes` are its elements in C order.
struct Array {
  Element element = Element::float32;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
  std::string remark = {};  ///< The reader's note on how it was read; mostly empty.
};

/// Bytes of all elements; nothing when 64 bits do not hold the number.
std::optional<std::uint64_t> array_bytes(Element element, const std::vector<std::uint64_t>& shape);

/// Elements in Fortran order put into C order.
std::vector<std::byte> from_fortran_order(const Array& array);

/// The array with elements of `to`, each rounded to the nearest value. bfloat16 is not cast to.
/// Errors: schema_mismatch: a float cast to an integer; an element that `to` does not hold, with
/// its place.
Result<Array> cast(Array array, DType to);

/// The first element that is NaN or infinite, such as "element [3, 17] is nan"; nothing when all
/// are finite.
std::optional<std::string> not_finite(const Array& array);

/// "float32 [3, 80]"
std::string describe(const Array& array);

}  // namespace batchwright
