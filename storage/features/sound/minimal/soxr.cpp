#include "storage/features/sound/resampler.h"

// Of a minimal build, which has no libsoxr.

namespace batchwright {

void Resampler::DeleteSoxr::operator()(soxr* /*handle*/) const noexcept {}

Result<void> Resampler::by_soxr(const RateRatio& /*ratio*/, std::span<const float> /*sound*/,
                                std::span<float> /*out*/) {
  return Error{ErrorCode::unsupported,
               "a minimal build has no libsoxr; allowed: features.resampler = \"sinc\""};
}

}  // namespace batchwright
