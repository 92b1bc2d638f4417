#pragma once

#include <vector>

#include "formats/formats.h"

namespace batchwright::fuzz {

/// One field; one of each kind; several of a kind, wide ones and empty names of classes.
inline std::vector<Schema> record_schemas() {
  const FieldSpec primary{"features", FieldKind::primary, DType::float32, {3}, {}};
  const FieldSpec narrow{"bytes", FieldKind::primary, DType::uint8, {}, {}};
  const FieldSpec targets{"targets", FieldKind::aligned, DType::int16, {}, {}};
  const FieldSpec tokens{"tokens", FieldKind::independent, DType::int32, {}, {}};
  const FieldSpec speaker{"speaker", FieldKind::scalar, DType::uint8, {}, {"ann", "bob"}};
  const FieldSpec vector{"vector", FieldKind::scalar, DType::int64, {2, 2}, {}};
  return {
      {{narrow}, {}},
      {{primary, targets, tokens, speaker}, {}},
      {{tokens, {"more", FieldKind::independent, DType::float16, {4}, {}}, primary, vector}, {}}};
}

}  // namespace batchwright::fuzz
