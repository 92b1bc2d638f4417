#pragma once

#include <cstdint>

#include "daemon/planning/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// Stochastic data sweeping (Deng et al. 2015): the share of the sequences that each epoch uses.
class Sweep {
 public:
  /// Solves beta or lambda when `usage` is given.
  /// Errors: infeasible, with the range of what is feasible.
  static Result<Sweep> make(const PlanSettings& settings);

  /// s(epoch), in (0, 1].
  double share(std::uint64_t epoch) const;
  /// Mean share of epochs 0 to `epoch`: the data usage rate so far.
  double usage_until(std::uint64_t epoch) const;
  /// The first of the epochs that use least.
  std::uint64_t smallest_epoch() const;
  /// alpha, beta or lambda; 0 for select = full.
  double parameter() const { return parameter_; }

 private:
  double falling(std::uint64_t epoch) const;  ///< The share of an epoch up to flat_after.

  Select select_ = Select::full;
  double parameter_ = 0;
  std::uint64_t flat_after_ = 0;
  double floor_ = 0;
};

/// The same on every platform, which the C library's cosine is not. 0 <= x <= 1.6.
double exact_cosine(double x);

}  // namespace batchwright
