#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset_generated.h"
#include "formats/base/base.h"

namespace batchwright {

using wire::DType;
using wire::FieldKind;
using wire::Layout;

/// Bytes of one element; 0 for a value that is no dtype.
std::size_t dtype_bytes(DType dtype);

/// "float32" and so on; "unknown" for a value that is no dtype.
std::string_view dtype_name(DType dtype);

/// The dtype of that name. Errors: invalid_argument, which lists the names.
Result<DType> parse_dtype(std::string_view name);

/// "primary", "aligned", "independent" or "scalar".
std::string_view kind_name(FieldKind kind);

/// One named tensor of every sequence of a dataset.
struct FieldSpec {
  std::string name;
  FieldKind kind = FieldKind::primary;
  DType dtype = DType::float32;
  std::vector<std::uint32_t> shape;     ///< Shape of one frame; empty: one element a frame.
  std::vector<std::string> categories;  ///< Names of the values 0, 1, ...; empty: none.
  /// So many of the last categories were appended after the dataset was made; its content
  /// fingerprint does not cover them.
  std::uint32_t appended_categories = 0;
  friend bool operator==(const FieldSpec&, const FieldSpec&) = default;
};

/// Whether the field has a value for each frame of its sequence.
inline bool per_frame(const FieldSpec& field) {
  return field.kind == FieldKind::primary || field.kind == FieldKind::aligned;
}

/// Bytes of one frame of `field` (of the whole value, for a scalar).
std::size_t frame_bytes(const FieldSpec& field);

/// The common properties of all sequences of a dataset.
struct Schema {
  std::vector<FieldSpec> fields;  ///< Exactly one of them is primary; names are unique.
  std::vector<std::pair<std::string, std::string>> settings;  ///< How the data were made.

  /// Position of the primary field. The schema must be valid.
  std::size_t primary() const;
  /// Position of the field of that name. Errors: not_found, which lists the names.
  Result<std::size_t> find(std::string_view name) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

/// Most fields a schema may have, and most bytes a frame of one may take.
inline constexpr std::size_t kMaxFields = 64;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 24;

/// Errors: invalid_argument, naming the field and what is wrong with it.
Result<void> validate(const Schema& schema);

/// Version of the dataset format that this code writes, and the newest it reads.
inline constexpr std::uint16_t kDatasetFormatVersion = 1;

/// The schema as a FlatBuffer (dataset.fbs).
std::vector<std::byte> encode_description(const Schema& schema);

/// Reads nothing outside `bytes`, at any alignment.
/// Errors: corrupt_record, unsupported_version (names both versions).
Result<Schema> decode_description(std::span<const std::byte> bytes);

}  // namespace batchwright
