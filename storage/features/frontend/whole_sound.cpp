#include "storage/features/frontend/whole_sound.h"

#include <algorithm>
#include <cmath>

namespace batchwright {
namespace {

/// NeMo's, so that a dimension that never changes is not divided by 0.
constexpr double kLeastDeviation = 1e-5;

void raise(std::span<double> values, double below_largest) {
  const double least = *std::max_element(values.begin(), values.end()) - below_largest;
  for (double& value : values) value = std::max(value, least);
}

/// (y - mean) / (sd + 1e-5) of every `step`-th value from `first` on, sd with a divisor of one less
/// than there are, and 0 for one.
void standardise(std::span<double> values, std::size_t first, std::size_t step) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = first; i < values.size(); i += step, ++count) sum += values[i];
  const double mean = sum / count;
  double squares = 0;
  for (std::size_t i = first; i < values.size(); i += step) {
    squares += (values[i] - mean) * (values[i] - mean);
  }
  const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  for (std::size_t i = first; i < values.size(); i += step) {
    values[i] = (values[i] - mean) / (deviation + kLeastDeviation);
  }
}

}  // namespace

bool looks_at_all(const FrontEndOptions& options) {
  return options.normalise != Normalise::none || (options.log == LogKind::db && options.top_db > 0);
}

void finish_values(const FrontEndOptions& options, std::size_t bands, std::span<double> values) {
  if (values.empty()) return;
  if (options.log == LogKind::db && options.top_db > 0) raise(values, options.top_db);
  switch (options.normalise) {
    case Normalise::none: break;
    case Normalise::whisper:
      raise(values, 8);
      for (double& value : values) value = (value + 4) / 4;
      break;
    case Normalise::per_feature:
      for (std::size_t b = 0; b < bands; ++b) standardise(values, b, bands);
      break;
    case Normalise::all_features: standardise(values, 0, 1); break;
  }
}

}  // namespace batchwright
