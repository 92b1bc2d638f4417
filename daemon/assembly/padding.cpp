#include "daemon/assembly/padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace batchwright {
namespace {

/// Each field that can have padding, for the text of an error.
std::string padded_fields(const Schema& schema) {
  std::string names;
  for (const FieldSpec& field : schema.fields) {
    if (field.kind == FieldKind::scalar) continue;
    names += (names.empty() ? "" : " ") + field.name;
  }
  return names;
}

}  // namespace

double padding_value(const PaddingValues& values, const FieldSpec& field) {
  const auto found = values.find(field.name);
  return found == values.end() ? 0.0 : found->second;
}

Result<void> check_padding(const PaddingValues& values, const Schema& schema) {
  for (const auto& [key, value] : values) {
    const std::string& name = key;  // a lambda cannot capture a structured binding
    const auto field = std::find_if(schema.fields.begin(), schema.fields.end(),
                                    [&name](const FieldSpec& each) { return each.name == name; });
    if (field == schema.fields.end() || field->kind == FieldKind::scalar) {
      return Error{
          ErrorCode::bad_configuration,
          fmt::format("padding.{}: {}; allowed: {}", name,
                      field == schema.fields.end() ? "the dataset has no such field"
                                                   : "the field is a scalar, which has no padding",
                      padded_fields(schema))};
    }
    if (const std::string refused = refused_number(field->dtype, value); !refused.empty()) {
      return Error{ErrorCode::bad_configuration, fmt::format("padding.{}: {}", name, refused)};
    }
  }
  return {};
}

}  // namespace batchwright
