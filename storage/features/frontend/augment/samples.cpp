#include "storage/features/frontend/augment/samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace batchwright {

Result<void> check_dither(double dither) {
  if (dither >= 0 && std::isfinite(dither)) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("dither {}; allowed: 0 (off) and finite numbers above", dither)};
}

void add_dither(const DrawKey& key, double dither, double scale, std::span<float> sound) {
  if (dither == 0) return;
  const Draws draws(key, DrawStage::dither);
  const double factor = dither / scale;
  const auto add = [factor](float& sample, double normal) {
    sample = static_cast<float>(static_cast<double>(sample) + factor * normal);
  };
  for (std::size_t n = 0; n < sound.size(); n += 2) {
    const auto both = draws.normals(n / 2);
    add(sound[n], both.even);
    if (n + 1 < sound.size()) add(sound[n + 1], both.odd);
  }
}

std::int16_t whole_sample(double x) {
  const double scaled = x * 32768;
  if (!(scaled >= -32768)) return static_cast<std::int16_t>(std::isnan(scaled) ? 0 : -32768);
  return static_cast<std::int16_t>(std::nearbyint(std::min(scaled, 32767.0)));
}

std::uint64_t to_whole_samples(std::span<const float> sound, std::span<std::int16_t> out) {
  std::uint64_t saturated = 0;
  for (std::size_t n = 0; n < sound.size(); ++n) {
    const auto x = static_cast<double>(sound[n]);
    const double rounded = std::nearbyint(x * 32768);
    if (!(rounded >= -32768 && rounded <= 32767)) ++saturated;
    out[n] = whole_sample(x);
  }
  return saturated;
}

}  // namespace batchwright
