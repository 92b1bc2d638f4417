#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>

#include "storage/features/frontend/frontend.h"
#include "storage/features/sound/sinc_table.h"

struct soxr;

namespace batchwright {

/// Resampling, with what one ratio takes kept for the next sound.
///
/// A sound's samples depend on the sound and the ratio alone, whatever was resampled before.
/// Threads: one at a time; it may move between threads.
class Resampler {
 public:
  /// Ratios whose filters are kept; with one more they are all made again.
  static constexpr std::size_t kMostRatios = 64;

  explicit Resampler(ResamplerKind kind) : kind_(kind) {}

  /// `out` has resampled_length() of `sound`, and is other memory. The ratio is one of
  /// rate_ratio(). Errors: invalid_argument: a ratio that the resampler cannot do; internal: it
  /// failed.
  Result<void> resample(const RateRatio& ratio, std::span<const float> sound, std::span<float> out);

  ResamplerKind kind() const { return kind_; }

 private:
  struct DeleteSoxr {
    void operator()(soxr* handle) const noexcept;
  };
  using SoxrHandle = std::unique_ptr<soxr, DeleteSoxr>;

  Result<void> by_soxr(const RateRatio& ratio, std::span<const float> sound, std::span<float> out);
  Result<void> by_sinc(const RateRatio& ratio, std::span<const float> sound, std::span<float> out);

  ResamplerKind kind_;
  std::map<RateRatio, SoxrHandle> soxr_;
  std::map<RateRatio, SincTable> sinc_;
};

}  // namespace batchwright
