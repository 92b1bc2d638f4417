#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "storage/dataset/dataset.h"

namespace batchwright {

/// The stored field that tells speakers apart.
struct SpeakerField {
  std::size_t field = 0;
  DType dtype = DType::none;
};

/// Errors: bad_configuration: there is no such field, or it is not a scalar of one whole number.
Result<SpeakerField> find_speaker(const Schema& schema, const std::string& name);

/// Its value in a sequence, as text. `values` are those of the stored fields, which may lie in a
/// map. Errors: store_unavailable.
Result<std::string> speaker_name(const SpeakerField& speaker, std::span<const FieldValue> values);

}  // namespace batchwright
