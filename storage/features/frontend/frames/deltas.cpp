#include "storage/features/frontend/frames/deltas.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {
namespace {

constexpr std::uint32_t kMostOrder = 3;
constexpr std::uint32_t kMostSide = 64;

/// Weights -n ... n of a slope: i / (2 * (1 + 4 + ... + n^2)).
std::vector<double> slope_filter(std::uint32_t n) {
  double squares = 0;
  for (std::uint32_t i = 1; i <= n; ++i) squares += static_cast<double>(i) * i;
  std::vector<double> filter;
  for (std::int64_t i = -std::int64_t{n}; i <= n; ++i) {
    filter.push_back(static_cast<double>(i) / (2 * squares));
  }
  return filter;
}

std::vector<double> composed(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> filter(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) filter[i + j] += a[i] * b[j];
  }
  return filter;
}

/// Values [T][dimensions] filtered over time, their ends repeated; the filter's middle is at the
/// frame itself.
void filter_frames(const std::vector<double>& filter, std::size_t dimensions,
                   const std::vector<double>& values, std::vector<double>& out) {
  const auto frames = static_cast<std::int64_t>(values.size() / dimensions);
  const auto side = static_cast<std::int64_t>(filter.size() / 2);
  out.assign(values.size(), 0.0);
  for (std::int64_t t = 0; t < frames; ++t) {
    double* const to = out.data() + static_cast<std::size_t>(t) * dimensions;
    for (std::int64_t i = -side; i <= side; ++i) {
      const double weight = filter[static_cast<std::size_t>(i + side)];
      const std::int64_t from = std::clamp(t + i, std::int64_t{0}, frames - 1);
      const double* const x = values.data() + static_cast<std::size_t>(from) * dimensions;
      for (std::size_t d = 0; d < dimensions; ++d) to[d] += weight * x[d];
    }
  }
}

}  // namespace

Result<void> check(const DeltaOptions& options) {
  if (options.order > kMostOrder) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("deltas of order {}; allowed: 0 to {}", options.order, kMostOrder)};
  }
  if (options.window >= 1 && options.window <= kMostSide) return {};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("delta_window of {} frames; allowed: 1 to {}", options.window, kMostSide)};
}

void append_deltas(const DeltaOptions& options, std::size_t dimensions,
                   std::span<const float> frames, std::span<float> out, DeltaScratch& scratch) {
  const std::size_t count = frames.size() / dimensions;
  const std::size_t row = dimensions * (options.order + 1);
  for (std::size_t t = 0; t < count; ++t) {
    std::copy_n(frames.data() + t * dimensions, dimensions, out.data() + t * row);
  }
  const std::vector<double> slope = slope_filter(options.window);
  std::vector<double> filter = slope;
  scratch.values.assign(frames.begin(), frames.end());
  for (std::uint32_t order = 1; order <= options.order; ++order) {
    filter_frames(filter, dimensions, scratch.values, scratch.slopes);
    for (std::size_t t = 0; t < count; ++t) {
      std::transform(scratch.slopes.data() + t * dimensions,
                     scratch.slopes.data() + (t + 1) * dimensions,
                     out.data() + t * row + order * dimensions,
                     [](double value) { return static_cast<float>(value); });
    }
    if (options.edges == DeltaEdges::kaldi) {
      filter = composed(filter, slope);
    } else {
      std::swap(scratch.values, scratch.slopes);
    }
  }
}

}  // namespace batchwright
