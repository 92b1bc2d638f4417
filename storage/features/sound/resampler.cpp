#include "storage/features/sound/resampler.h"

#include <algorithm>

namespace batchwright {

Result<void> Resampler::resample(const RateRatio& ratio, std::span<const float> sound,
                                 std::span<float> out) {
  if (ratio.from == ratio.to) {
    std::copy_n(sound.data(), std::min(sound.size(), out.size()), out.data());
    return {};
  }
  return kind_ == ResamplerKind::soxr ? by_soxr(ratio, sound, out) : by_sinc(ratio, sound, out);
}

Result<void> Resampler::by_sinc(const RateRatio& ratio, std::span<const float> sound,
                                std::span<float> out) {
  auto found = sinc_.find(ratio);
  if (found == sinc_.end()) {
    auto table = SincTable::create(ratio);
    if (!table) return table.error();
    if (sinc_.size() >= kMostRatios) sinc_.clear();
    found = sinc_.emplace(ratio, *std::move(table)).first;
  }
  found->second.resample(sound, out);
  return {};
}

}  // namespace batchwright
