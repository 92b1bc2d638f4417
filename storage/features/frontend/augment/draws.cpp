#include "storage/features/frontend/augment/draws.h"

#include <cmath>
#include <numbers>

namespace batchwright {
namespace {

// Keeps these streams apart from planning's, which begin in the same way with its stages.
constexpr std::uint64_t kFirstStage = 64;

/// In version 1 an epoch of one seed is an earlier one of the next seed.
std::uint64_t start_of_epoch(const DrawKey& key) {
  if (!key.identity) return mix64(key.seed + key.epoch);
  return mix64(mix64(mix64(key.seed) + *key.identity) + key.epoch);
}

}  // namespace

EpochDraws::EpochDraws(const DrawKey& key, DrawStage stage)
    : start_(mix64(start_of_epoch(key) + kFirstStage + static_cast<std::uint64_t>(stage))) {}

Draws::Draws(const DrawKey& key, DrawStage stage)
    : Draws(EpochDraws(key, stage).of(key.ordinal, key.use)) {}

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

}  // namespace batchwright
