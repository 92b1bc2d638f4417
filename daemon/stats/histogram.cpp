#include "daemon/stats/histogram.h"

#include <algorithm>
#include <bit>

namespace batchwright {
namespace {

/// The first range whose bound is not below the duration.
std::size_t range_of(std::uint64_t nanoseconds) {
  if (nanoseconds <= 1000) return 0;
  // Rounded up: a duration just above a bound belongs to the next range.
  const std::uint64_t microseconds = (nanoseconds + 999) / 1000;
  return std::min<std::size_t>(std::bit_width(microseconds - 1), Histogram::kBounds);
}

}  // namespace

void Histogram::add(Duration duration) noexcept {
  const auto taken = static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
  ranges_[range_of(taken)].fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(taken, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& range : ranges_) sum += range.load(std::memory_order_relaxed);
  return sum;
}

double Histogram::seconds() const noexcept {
  return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
}

std::optional<double> Histogram::quantile(double q) const noexcept {
  const auto all = static_cast<double>(count());
  if (all == 0.0) return std::nullopt;
  const double wanted = std::clamp(q, 0.0, 1.0) * all;
  double below = 0.0;
  for (std::size_t i = 0; i < kBounds; ++i) {
    const auto here = static_cast<double>(in_range(i));
    if (here > 0.0 && below + here >= wanted) {
      // Linear within the range, as Prometheus' histogram_quantile() does it.
      const double from = i == 0 ? 0.0 : bound_seconds(i - 1);
      return from + (bound_seconds(i) - from) * (wanted - below) / here;
    }
    below += here;
  }
  return bound_seconds(kBounds - 1);
}

}  // namespace batchwright
