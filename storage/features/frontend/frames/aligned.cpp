#include "storage/features/frontend/frames/aligned.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace batchwright {
namespace {

std::uint64_t reduced_length(const AlignedSteps& steps) {
  const auto* const stacking = std::get_if<Stacking>(&steps.reduced);
  if (stacking != nullptr) return stacked_length(steps.frames, *stacking);
  return kept_length(steps.frames, std::get<KeepOne>(steps.reduced));
}

/// The frame, before it was stacked or others were left out, whose value frame t has.
std::uint64_t before_reduction(const AlignedSteps& steps, std::uint64_t t) {
  const auto* const stacking = std::get_if<Stacking>(&steps.reduced);
  if (stacking == nullptr) {
    const KeepOne& keep = std::get<KeepOne>(steps.reduced);
    return keep.offset + t * keep.of;
  }
  return std::min(t * stacking->stride + stacking->target_offset, steps.frames - 1);
}

}  // namespace

Result<AlignedRows> AlignedRows::create(const AlignedSteps& steps, std::uint64_t values,
                                        std::uint32_t slack) {
  const std::uint64_t wanted = steps.unperturbed;
  const std::uint64_t apart = values > wanted ? values - wanted : wanted - values;
  if (apart > slack) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("an aligned field of {} values for {} frames; allowed: up to {} more "
                             "or fewer (label_slack)",
                             values, wanted, slack)};
  }
  if (steps.frames > 0 && (values == 0 || wanted == 0)) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("an aligned field of {} values for {} frames; allowed: 1 and up",
                             values, steps.frames)};
  }
  return AlignedRows(steps, values);
}

std::uint64_t AlignedRows::size() const {
  return delayed_length(reduced_length(steps_), steps_.delay);
}

std::optional<std::uint64_t> AlignedRows::source(std::uint64_t t) const {
  if (t < steps_.delay.frames) return std::nullopt;
  const std::uint64_t frame = before_reduction(steps_, t - steps_.delay.frames);
  // The middle of frame t of T2 lies in this one of T1.
  const std::uint64_t unperturbed = (2 * frame + 1) * steps_.unperturbed / (2 * steps_.frames);
  return std::min(unperturbed, values_ - 1);
}

void AlignedRows::copy(std::span<const std::byte> values, std::size_t row_bytes,
                       std::span<const std::byte> ignored, std::span<std::byte> out) const {
  const std::uint64_t count = size();
  for (std::uint64_t t = 0; t < count; ++t) {
    const auto place = source(t);
    const std::byte* const from = place ? values.data() + *place * row_bytes : ignored.data();
    std::memcpy(out.data() + t * row_bytes, from, row_bytes);
  }
}

}  // namespace batchwright
