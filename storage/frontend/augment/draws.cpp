#include "storage/frontend/augment/draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace batchwright {
namespace {

// Keeps these streams apart from planning's, which begin in the same way with its stages.
constexpr std::uint64_t kFirstStage = 64;

std::uint64_t stream_of(const DrawKey& key, DrawStage stage) {
  std::uint64_t h = mix64(key.seed + key.epoch);
  h = mix64(h + kFirstStage + static_cast<std::uint64_t>(stage));
  h = mix64(h + key.ordinal);
  return mix64(h + key.use);
}

/// The upper 53 bits, all that a double holds.
double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

Draws::Draws(const DrawKey& key, DrawStage stage)
    : start_(stream_of(key, stage)), generator_(start_) {}

double Draws::uniform() { return unit_of(next()); }

std::size_t Draws::pick(std::span<const double> weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  const double wanted = uniform() * total;
  double passed = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    passed += weights[k];
    if (passed > wanted) return k;
  }
  return weights.size() - 1;  // rounding left none
}

Draws::NormalPair Draws::normals(std::uint64_t pair) const {
  // Box and Muller. 1 - u lies in (0, 1], which has a logarithm.
  const double radius = std::sqrt(-2 * std::log(1 - unit_of(start_.next_at(2 * pair))));
  const double angle = 2 * std::numbers::pi * unit_of(start_.next_at(2 * pair + 1));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double Draws::normal(std::uint64_t n) const {
  const NormalPair both = normals(n / 2);
  return n % 2 == 0 ? both.even : both.odd;
}

std::size_t draw_speed(const DrawKey& key, std::size_t count) {
  const double place = Draws(key, DrawStage::speed).uniform() * static_cast<double>(count);
  return std::min(static_cast<std::size_t>(place), count - 1);
}

std::uint32_t draw_keep_offset(const DrawKey& key, std::uint32_t of) {
  return Draws(key, DrawStage::keep_one_of).below(of);
}

}  // namespace batchwright
