#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The dtypes that float32 fields are cast to on their way into a batch: float16 or bfloat16.
struct Casts {
  DType all = DType::none;  ///< Of every float32 field; none: of those in `fields` alone.
  std::map<std::string, DType, std::less<>> fields;  ///< By name.

  friend bool operator==(const Casts&, const Casts&) = default;
};

/// The dtype that a field has in a batch. `casts` belong to the schema, as check_casts() says.
DType cast_dtype(const Casts& casts, const FieldSpec& field);

/// The schema of the batches: that of the dataset with the fields' dtypes in a batch.
Schema cast_schema(const Casts& casts, Schema schema);

/// Whether there is something to cast, and all of it is float32.
/// Errors: bad_configuration, with the field, what it is, and the fields that can be cast.
Result<void> check_casts(const Casts& casts, const Schema& schema);

}  // namespace batchwright
