#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include "daemon/assembly/assembler.h"

namespace batchwright {
namespace {

/// Sums and products, in 64 bits on every machine, that stop at the largest number: any figure near
/// it is refused anyway.
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

template <class T>
std::uint64_t largest(std::span<const T> values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// Most bytes the field's tensor takes in one batch. `field`: its place among the stored ones.
std::uint64_t tensor_bytes(const Snapshot& snapshot, std::size_t field, const FieldSpec& spec,
                           const PlanBound& bound) {
  const std::size_t frame = frame_bytes(spec);
  switch (spec.kind) {
    case FieldKind::primary:
    case FieldKind::aligned: return times(bound.padded_frames, frame);
    case FieldKind::scalar: return times(bound.rows, frame);
    // Its longest value may be in any batch, and stretches every row of it.
    case FieldKind::independent:
      return times(times(bound.rows, largest(snapshot.field_lengths(field))), frame);
  }
  return 0;
}

}  // namespace

Result<std::size_t> slot_bytes_for(const Snapshot& snapshot, const BatchStyle& style,
                                   const PlanBound& bound) {
  const Schema schema = cast_schema(style.casts, row_schema(snapshot, style.recipe.get()));
  const std::vector<FieldSpec>& fields = schema.fields;
  BatchBound batch{bound.rows, times(bound.rows, largest(snapshot.key_bytes())), 0, fields.size(),
                   style.feed.size()};
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::size_t stored = style.recipe ? style.recipe->stored_field(f) : f;
    batch.payload_bytes =
        plus(batch.payload_bytes, tensor_bytes(snapshot, stored, fields[f], bound));
    batch.name_bytes += fields[f].name.size();
  }
  // Rows cost some bytes beside the payload; far above the limit their sum could wrap around.
  const std::uint64_t least = plus(plus(batch.payload_bytes, batch.key_bytes), bound.rows);
  const std::uint64_t bytes = least > kMaxBatchBytes ? least : batch_bytes_bound(batch);
  if (bytes <= kMaxBatchBytes) return static_cast<std::size_t>(bytes);
  return Error{ErrorCode::does_not_fit,
               fmt::format("the largest batch of feed \"{}\" would take {} bytes ({} rows, {} "
                           "padded frames); the format allows {}: make the plan's batches smaller",
                           style.feed, bytes, bound.rows, bound.padded_frames, kMaxBatchBytes)};
}

}  // namespace batchwright
