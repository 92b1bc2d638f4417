#include "formats/schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "formats/aligned_copy.h"

namespace batchwright {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kDTypes = {
    DTypeRow{DType::float32, "float32", 4},   DTypeRow{DType::float16, "float16", 2},
    DTypeRow{DType::bfloat16, "bfloat16", 2}, DTypeRow{DType::int64, "int64", 8},
    DTypeRow{DType::int32, "int32", 4},       DTypeRow{DType::int16, "int16", 2},
    DTypeRow{DType::uint8, "uint8", 1}};

Error bad_field(const FieldSpec& field, const std::string& what) {
  return {ErrorCode::invalid_argument, fmt::format("field \"{}\": {}", field.name, what)};
}

Result<void> validate_field(const FieldSpec& field) {
  if (field.name.empty() || field.name.size() > 255) {
    return bad_field(field, "a name has 1 to 255 bytes");
  }
  if (dtype_bytes(field.dtype) == 0) return bad_field(field, "unknown dtype");
  if (field.kind > FieldKind::scalar) return bad_field(field, "unknown kind");
  if (field.kind == FieldKind::scalar && !field.shape.empty()) {
    return bad_field(field, "a scalar has no shape");
  }
  // A batch puts rows and frames in front, and the C ABI has room for 8 (BW_MAX_DIMENSIONS).
  if (field.shape.size() > 6) return bad_field(field, "at most 6 dimensions a frame");
  std::size_t bytes = dtype_bytes(field.dtype);
  for (const std::uint32_t extent : field.shape) {
    // A field without content has lengths, which the length index knows.
    if (extent == 0 && field.kind == FieldKind::aligned)
      return bad_field(field, "a dimension of 0");
    // Compared after each factor: 16 MiB times 32 bits cannot wrap around.
    bytes *= extent;
    if (bytes > kMaxFrameBytes) return bad_field(field, "a frame takes at most 16 MiB");
  }
  // Floats come first in the enumeration, whose numbers are fixed by the format.
  const bool is_float = field.dtype <= DType::bfloat16;
  if (!field.categories.empty() && is_float) {
    return bad_field(field, "categories go with an integer dtype");
  }
  if (field.appended_categories > field.categories.size()) {
    return bad_field(field, "more categories were appended than there are");
  }
  return {};
}

FieldSpec read_field(const wire::Field& field) {
  FieldSpec spec{field.name()->str(), field.kind(), field.dtype(), {}, {}};
  if (field.shape() != nullptr) spec.shape.assign(field.shape()->begin(), field.shape()->end());
  if (field.categories() != nullptr) {
    for (const auto* name : *field.categories()) spec.categories.push_back(name->str());
  }
  spec.appended_categories = field.appended_categories();
  return spec;
}

}  // namespace

std::size_t dtype_bytes(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row.bytes;
  }
  return 0;
}

std::string_view dtype_name(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row.name;
  }
  return "unknown";
}

Result<DType> parse_dtype(std::string_view name) {
  std::string names;
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
    names += names.empty() ? "" : ", ";
    names += row.name;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("unknown dtype \"{}\"; allowed: {}", name, names)};
}

std::string_view kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::primary: return "primary";
    case FieldKind::aligned: return "aligned";
    case FieldKind::independent: return "independent";
    case FieldKind::scalar: return "scalar";
  }
  return "unknown";
}

std::size_t frame_bytes(const FieldSpec& field) {
  std::size_t bytes = dtype_bytes(field.dtype);
  for (const std::uint32_t extent : field.shape) bytes *= extent;
  return bytes;
}

std::size_t Schema::primary() const {
  const auto found = std::find_if(fields.begin(), fields.end(), [](const FieldSpec& field) {
    return field.kind == FieldKind::primary;
  });
  return static_cast<std::size_t>(found - fields.begin());
}

Result<std::size_t> Schema::find(std::string_view name) const {
  std::string names;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
    names += names.empty() ? "" : ", ";
    names += fields[i].name;
  }
  return Error{ErrorCode::not_found,
               fmt::format("no field \"{}\"; the dataset has: {}", name, names)};
}

Result<void> validate(const Schema& schema) {
  if (schema.fields.size() > kMaxFields) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a schema has at most 64 fields, found {}", schema.fields.size())};
  }
  std::set<std::string_view> names;
  std::size_t primaries = 0;
  for (const FieldSpec& field : schema.fields) {
    if (auto checked = validate_field(field); !checked) return checked;
    if (!names.insert(field.name).second) return bad_field(field, "the name appears twice");
    if (field.kind == FieldKind::primary) ++primaries;
  }
  if (primaries != 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a schema has exactly one primary field, found {}", primaries)};
  }
  return {};
}

std::vector<std::byte> encode_description(const Schema& schema) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<wire::Field>> fields;
  for (const FieldSpec& field : schema.fields) {
    fields.push_back(wire::CreateField(builder, builder.CreateString(field.name), field.kind,
                                       field.dtype, builder.CreateVector(field.shape),
                                       builder.CreateVectorOfStrings(field.categories),
                                       field.appended_categories));
  }
  std::vector<flatbuffers::Offset<wire::Setting>> settings;
  for (const auto& [name, value] : schema.settings) {
    settings.push_back(
        wire::CreateSetting(builder, builder.CreateString(name), builder.CreateString(value)));
  }
  wire::FinishDatasetDescriptionBuffer(
      builder,
      wire::CreateDatasetDescription(builder, kDatasetFormatVersion, builder.CreateVector(fields),
                                     builder.CreateVector(settings)));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

Result<Schema> decode_description(std::span<const std::byte> bytes) {
  // LMDB keeps the description at any even address.
  const AlignedCopy copy(bytes);
  flatbuffers::Verifier verifier(copy.data(), copy.size());
  if (!wire::VerifyDatasetDescriptionBuffer(verifier)) {
    return Error{ErrorCode::corrupt_record, "the dataset's description is not readable"};
  }
  const auto* description = wire::GetDatasetDescription(copy.data());
  // Named before the fields are read: a newer format may mean something else by them.
  if (description->format_version() > kDatasetFormatVersion) {
    return Error{
        ErrorCode::unsupported_version,
        fmt::format(
            "dataset format version {} is newer than version {}, the newest this program reads",
            description->format_version(), kDatasetFormatVersion)};
  }
  Schema schema;
  for (const auto* field : *description->fields()) schema.fields.push_back(read_field(*field));
  if (description->settings() != nullptr) {
    for (const auto* setting : *description->settings()) {
      schema.settings.emplace_back(setting->name()->str(), setting->value()->str());
    }
  }
  // Fields that no writer would have taken are damage, and not the caller's mistake.
  if (auto checked = validate(schema); !checked) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("the dataset's description is wrong: {}", checked.error().message)};
  }
  return schema;
}

}  // namespace batchwright
