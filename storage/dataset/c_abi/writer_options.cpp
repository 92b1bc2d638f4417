#include "storage/dataset/c_abi/writer_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "storage/dataset/reader.h"

namespace batchwright {
namespace {

constexpr bw_writer_options kDefaults = BW_WRITER_OPTIONS_INIT;
/// A year, which is as good as no limit.
constexpr std::int64_t kLongestMs = 365LL * 24 * 3600 * 1000;

Error invalid(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

/// What is checked here would not survive our narrower types; validate() sees to the rest.
Result<FieldSpec> to_spec(const bw_field& field) {
  if (field.name == nullptr) return invalid("a field has no name");
  FieldSpec spec;
  spec.name = field.name;
  const std::string where = fmt::format("field \"{}\"", spec.name);
  if (field.kind < BW_PRIMARY || field.kind > BW_SCALAR) {
    return invalid(
        fmt::format("{}: kind {}; 0 (primary) to 3 (scalar) is allowed", where, field.kind));
  }
  if (field.dtype < BW_FLOAT32 || field.dtype > BW_UINT8) {
    return invalid(
        fmt::format("{}: dtype {}; 1 (float32) to 7 (uint8) is allowed", where, field.dtype));
  }
  spec.kind = static_cast<FieldKind>(field.kind);
  spec.dtype = static_cast<DType>(field.dtype);
  if (field.ndim > BW_MAX_DIMENSIONS) {
    return invalid(fmt::format("{}: {} dimensions a frame; 0 to 6 is allowed", where, field.ndim));
  }
  for (std::uint32_t i = 0; i < field.ndim; ++i) {
    // No smaller bound is needed: 24 bits fit our 32, and validate() looks at the product.
    if (field.shape[i] > kMaxFrameBytes) {
      return invalid(fmt::format("{}: a dimension of {}; a frame takes at most 16 MiB", where,
                                 field.shape[i]));
    }
    spec.shape.push_back(static_cast<std::uint32_t>(field.shape[i]));
  }
  if (field.category_count != 0 && field.categories == nullptr) {
    return invalid(fmt::format("{}: has categories without names", where));
  }
  for (std::uint32_t i = 0; i < field.category_count; ++i) {
    if (field.categories[i] == nullptr) {
      return invalid(fmt::format("{}: has a category without a name", where));
    }
    spec.categories.emplace_back(field.categories[i]);
  }
  return spec;
}

Result<Schema> to_schema(const bw_writer_options& options) {
  Schema schema;
  if (options.fields == nullptr) return invalid("fields are counted, but not given");
  for (std::size_t i = 0; i < options.field_count; ++i) {
    if (options.fields[i] == nullptr) return invalid("a field is not given");
    auto spec = to_spec(*options.fields[i]);
    if (!spec) return spec.error();
    schema.fields.push_back(std::move(*spec));
  }
  if (options.setting_count != 0 && options.settings == nullptr) {
    return invalid("settings are counted, but not given");
  }
  for (std::size_t i = 0; i < options.setting_count; ++i) {
    const bw_setting& setting = options.settings[i];
    if (setting.name == nullptr || setting.value == nullptr) {
      return invalid("a setting has no name or no value");
    }
    schema.settings.emplace_back(setting.name, setting.value);
  }
  return schema;
}

/// The schema of the existing dataset.
Result<Schema> schema_at(const std::filesystem::path& path) {
  std::error_code unreadable;  // then opening it says why
  if (!std::filesystem::exists(path / "data.mdb", unreadable) && !unreadable) {
    return Error{ErrorCode::not_found,
                 fmt::format("there is no dataset at {}, and none can be made without fields",
                             path.string())};
  }
  const auto dataset = Catalog().open({path});
  if (!dataset) return dataset.error();
  return (*dataset)->schema();
}

}  // namespace

Result<WriterRequest> to_writer_request(const std::filesystem::path& path,
                                        const bw_writer_options* given) {
  const auto options = read_options(given, kDefaults);
  if (!options) return options.error();
  if (options->opening < BW_CREATE_OR_APPEND || options->opening > BW_APPEND) {
    return invalid(
        fmt::format("opening is {}; BW_CREATE_OR_APPEND, BW_CREATE and BW_APPEND are allowed",
                    options->opening));
  }
  if (options->timeout_ms < 0) return invalid("timeout_ms is below 0");
  // Without fields the writer appends to a dataset with the fields it has.
  auto schema = options->field_count == 0 ? schema_at(path) : to_schema(*options);
  if (!schema) return schema.error();
  WriterRequest request{std::move(*schema), {}, static_cast<Opening>(options->opening)};
  // 0 stands for the default, as writer.h has it.
  if (options->commit_bytes != 0) request.limits.commit_bytes = options->commit_bytes;
  if (options->commit_sequences != 0) request.limits.commit_sequences = options->commit_sequences;
  request.limits.map_bytes = options->map_bytes;
  request.limits.wait = std::chrono::milliseconds(std::min(options->timeout_ms, kLongestMs));
  return request;
}

FieldTable::FieldTable(const Schema& schema) {
  categories_.reserve(schema.fields.size());
  for (const FieldSpec& spec : schema.fields) {
    std::vector<const char*>& names = categories_.emplace_back();
    for (const std::string& name : spec.categories) names.push_back(name.c_str());
    bw_field field{};
    field.name = spec.name.c_str();
    field.kind = static_cast<bw_kind>(spec.kind);
    field.dtype = static_cast<bw_dtype>(spec.dtype);
    field.ndim = static_cast<std::uint32_t>(spec.shape.size());
    field.category_count = static_cast<std::uint32_t>(names.size());
    std::copy(spec.shape.begin(), spec.shape.end(), field.shape);
    field.categories = names.empty() ? nullptr : names.data();
    fields_.push_back(field);
  }
}

}  // namespace batchwright
