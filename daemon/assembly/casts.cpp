#include "daemon/assembly/casts.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright {
namespace {

bool can_be_cast(const FieldSpec& field) { return field.dtype == DType::float32; }

std::string castable_fields(const Schema& schema) {
  std::string names;
  for (const FieldSpec& field : schema.fields) {
    if (can_be_cast(field)) names += (names.empty() ? "" : " ") + field.name;
  }
  return names.empty() ? "none, for the dataset has no float32 field" : names;
}

}  // namespace

DType cast_dtype(const Casts& casts, const FieldSpec& field) {
  const auto named = casts.fields.find(field.name);
  if (named != casts.fields.end()) return named->second;
  return casts.all != DType::none && can_be_cast(field) ? casts.all : field.dtype;
}

Schema cast_schema(const Casts& casts, Schema schema) {
  for (FieldSpec& field : schema.fields) field.dtype = cast_dtype(casts, field);
  return schema;
}

Result<void> check_casts(const Casts& casts, const Schema& schema) {
  for (const auto& [key, dtype] : casts.fields) {
    const std::string& name = key;  // a lambda cannot capture a structured binding
    const auto field = std::find_if(schema.fields.begin(), schema.fields.end(),
                                    [&name](const FieldSpec& each) { return each.name == name; });
    if (field != schema.fields.end() && can_be_cast(*field)) continue;
    return Error{ErrorCode::bad_configuration,
                 fmt::format("dtype.{}: found {}, but {}; allowed: {}", name, dtype_name(dtype),
                             field == schema.fields.end()
                                 ? "the dataset has no such field"
                                 : fmt::format("the field is {}, and only float32 is cast",
                                               dtype_name(field->dtype)),
                             castable_fields(schema))};
  }
  const bool has_any = std::any_of(schema.fields.begin(), schema.fields.end(), can_be_cast);
  if (casts.all == DType::none || has_any) return {};
  return Error{ErrorCode::bad_configuration,
               fmt::format("dtype: found {}, but no field is float32, and nothing else is cast; "
                           "allowed: no dtype",
                           dtype_name(casts.all))};
}

}  // namespace batchwright
