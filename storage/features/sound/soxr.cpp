#include <fmt/core.h>
#include <soxr.h>

#include <algorithm>

#include "storage/features/sound/resampler.h"

namespace batchwright {
namespace {

/// Samples given to soxr at a time: it keeps a copy of what it was given.
constexpr std::size_t kPiece = std::size_t{1} << 14;

Error soxr_failed(const RateRatio& ratio, const char* reason) {
  return {ErrorCode::internal, fmt::format("resampling {} samples to {}: libsoxr says \"{}\"",
                                           ratio.from, ratio.to, reason)};
}

/// One sound through a cleared handle. What soxr gives beyond `out` is left.
Result<std::size_t> through(soxr* handle, const RateRatio& ratio, std::span<const float> sound,
                            std::span<float> out) {
  std::size_t taken = 0;
  std::size_t given = 0;
  while (given < out.size()) {
    const std::size_t piece = std::min(kPiece, sound.size() - taken);
    std::size_t in = 0;
    std::size_t made = 0;
    // Null says that the sound is at its end.
    const float* const from = piece > 0 ? sound.data() + taken : nullptr;
    if (const char* const reason =
            soxr_process(handle, from, piece, &in, out.data() + given, out.size() - given, &made)) {
      return soxr_failed(ratio, reason);
    }
    taken += in;
    given += made;
    if (from == nullptr && made == 0) break;
  }
  return given;
}

}  // namespace

void Resampler::DeleteSoxr::operator()(soxr* handle) const noexcept { soxr_delete(handle); }

Result<void> Resampler::by_soxr(const RateRatio& ratio, std::span<const float> sound,
                                std::span<float> out) {
  auto found = soxr_.find(ratio);
  if (found == soxr_.end()) {
    if (soxr_.size() >= kMostRatios) soxr_.clear();
    const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    soxr_error_t reason = nullptr;
    SoxrHandle handle(soxr_create(static_cast<double>(ratio.from), static_cast<double>(ratio.to), 1,
                                  &reason, &io, &quality, &runtime));
    if (reason != nullptr || handle == nullptr) {
      return soxr_failed(ratio, soxr_strerror(reason));
    }
    found = soxr_.emplace(ratio, std::move(handle)).first;
  } else if (const char* const reason = soxr_clear(found->second.get())) {
    soxr_.erase(found);
    return soxr_failed(ratio, reason);
  }
  const auto given = through(found->second.get(), ratio, sound, out);
  if (!given) {
    soxr_.erase(found);
    return given.error();
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(*given), out.end(), 0.0F);
  return {};
}

}  // namespace batchwright
