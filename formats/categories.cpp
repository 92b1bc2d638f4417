#include "formats/categories.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace batchwright {
namespace {

/// The first value that is the number of no category; empty when there is none.
template <class Number>
std::optional<std::int64_t> find_wrong(std::span<const std::byte> bytes, std::int64_t categories) {
  for (std::size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
    Number value;
    // Values lie at any address: they may be in a record, or in a caller's memory.
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value < 0 || std::int64_t{value} >= categories) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> find_wrong(DType dtype, std::span<const std::byte> bytes,
                                       std::int64_t categories) {
  switch (dtype) {
    case DType::int64: return find_wrong<std::int64_t>(bytes, categories);
    case DType::int32: return find_wrong<std::int32_t>(bytes, categories);
    case DType::int16: return find_wrong<std::int16_t>(bytes, categories);
    case DType::uint8: return find_wrong<std::uint8_t>(bytes, categories);
    default: return std::nullopt;  // a schema has categories for integers alone
  }
}

}  // namespace

std::string describe_wrong_category(const FieldSpec& field, std::span<const std::byte> bytes) {
  if (field.categories.empty()) return {};
  const auto categories = static_cast<std::int64_t>(field.categories.size());
  const auto wrong = find_wrong(field.dtype, bytes, categories);
  if (!wrong) return {};
  return fmt::format(
      "field \"{}\" has the value {}; allowed: 0 to {}, the numbers of its categories", field.name,
      *wrong, categories - 1);
}

}  // namespace batchwright
