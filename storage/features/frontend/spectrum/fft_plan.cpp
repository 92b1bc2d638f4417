#include "storage/features/frontend/spectrum/fft_plan.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <numbers>

namespace batchwright {
namespace {

/// Appends cos, sin of -2 pi turns / of.
template <class Value>
void append_root(std::vector<Value>& roots, std::uint64_t turns, std::uint64_t of) {
  const double angle =
      -2 * std::numbers::pi * static_cast<double>(turns % of) / static_cast<double>(of);
  roots.push_back(static_cast<Value>(std::cos(angle)));
  roots.push_back(static_cast<Value>(std::sin(angle)));
}

/// What is left of `points` without factors of 2, 3 and 5.
std::uint32_t other_factors(std::uint32_t points) {
  for (const std::uint32_t factor : {2U, 3U, 5U}) {
    while (points % factor == 0) points /= factor;
  }
  return points;
}

}  // namespace

template <class Value>
Result<FftPlan<Value>> FftPlan<Value>::create(std::uint32_t points) {
  if (points == 0 || points > kMaxFftPoints) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("an FFT of {} points; allowed: 1 to {}", points, kMaxFftPoints)};
  }
  if (const std::uint32_t other = other_factors(points); other != 1) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("an FFT of {} points, of which {} is a factor; allowed: products of 2, "
                    "3, 4 and 5",
                    points, other)};
  }
  FftPlan plan;
  plan.tables_.points = points;
  const bool even = points % 2 == 0;
  std::uint32_t left = even ? points / 2 : points;
  // The largest first: what passes through the arrays once for two factors is faster.
  for (std::uint32_t stride = 1; left > 1;) {
    constexpr std::array kRadices{16U, 8U, 4U, 5U, 3U, 2U};
    std::uint32_t radix = 2;
    for (const std::uint32_t each : kRadices) {
      if (left % each != 0) continue;
      radix = each;
      break;
    }
    auto& twiddles = plan.twiddles_.emplace_back();
    for (std::uint32_t p = 0; p < left / radix; ++p) {
      for (std::uint32_t j = 1; j < radix; ++j) append_root(twiddles, std::uint64_t{p} * j, left);
    }
    plan.steps_.push_back({radix, left / radix, stride, twiddles.data()});
    stride *= radix;
    left /= radix;
  }
  for (std::uint32_t k = 0; even && k <= points / 2; ++k) append_root(plan.roots_, k, points);
  plan.tables_.steps = plan.steps_.data();
  plan.tables_.step_count = plan.steps_.size();
  plan.tables_.roots = even ? plan.roots_.data() : nullptr;
  return plan;
}

template class FftPlan<double>;
template class FftPlan<float>;

}  // namespace batchwright
