#include "daemon/planning/stages/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>
#include <string>

namespace batchwright {
namespace {

constexpr double kHalfPi = std::numbers::pi / 2;

/// Sum of cos(lambda n) for n = 0 ... l, in this order.
double cosine_sum(double lambda, std::uint64_t l) {
  double sum = 0;
  for (std::uint64_t n = 0; n <= l; ++n) sum += exact_cosine(lambda * static_cast<double>(n));
  return sum;
}

/// The lambda whose cosines sum up to `wanted`; the sum falls as lambda grows.
double solve_cosine(double wanted, std::uint64_t l) {
  double low = 0;
  double high = kHalfPi / static_cast<double>(l);
  // More halvings than a double has bits, and always as many: the result is part of the plan.
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (cosine_sum(middle, l) > wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

Error too_large(std::string_view name, double found, double most, std::uint64_t l) {
  return {
      ErrorCode::infeasible,
      fmt::format(
          "{} = {:.8g} with flat_after = {} would pass below 0; feasible: above 0, up to {:.8g}",
          name, found, l, most)};
}

}  // namespace

double exact_cosine(double x) {
  // Taylor's series by Horner's rule. 15 terms: what is left out is below 1e-25.
  const double square = x * x;
  double value = 1;
  for (int k = 14; k >= 1; --k) value = 1 - square / ((2.0 * k - 1) * (2.0 * k)) * value;
  return value;
}

Result<Sweep> Sweep::make(const PlanSettings& s) {
  Sweep sweep;
  sweep.select_ = s.select;
  sweep.flat_after_ = s.flat_after;
  sweep.floor_ = s.floor;
  if (s.select == Select::full) return sweep;
  if (s.select == Select::fixed) {
    sweep.parameter_ = s.usage ? *s.usage : *s.alpha;
    return sweep;
  }
  const auto l = static_cast<double>(s.flat_after);
  const bool linear = s.select == Select::linear;
  // The share must not fall below 0 before flat_after.
  const double most = linear ? 1 / l : kHalfPi / l;
  if (!s.usage) {
    sweep.parameter_ = linear ? *s.beta : *s.lambda;
    if (sweep.parameter_ <= most) return sweep;
    return too_large(linear ? "beta" : "lambda", sweep.parameter_, most, s.flat_after);
  }
  const double epochs = s.epochs;
  const double flat = (epochs - l - 1) * s.floor;
  const double wanted = *s.usage * epochs - flat;  // W: what epochs 0 to l add up to
  const double least = linear ? (l + 1) / 2 : cosine_sum(most, s.flat_after);
  // At l + 1 the share would not fall at all.
  if (wanted < least || wanted >= l + 1) {
    return Error{ErrorCode::infeasible,
                 fmt::format("usage = {:.8g} with flat_after = {}, floor = {:.8g} and epochs = {}; "
                             "feasible: from {:.8g} to below {:.8g}",
                             *s.usage, s.flat_after, s.floor, s.epochs, (least + flat) / epochs,
                             (l + 1 + flat) / epochs)};
  }
  sweep.parameter_ =
      linear ? 2 * (l + 1 - wanted) / (l * (l + 1)) : solve_cosine(wanted, s.flat_after);
  return sweep;
}

double Sweep::falling(std::uint64_t epoch) const {
  const double angle = parameter_ * static_cast<double>(epoch);
  return select_ == Select::linear ? 1 - angle : exact_cosine(angle);
}

double Sweep::share(std::uint64_t epoch) const {
  switch (select_) {
    case Select::full: return 1;
    case Select::fixed: return parameter_;
    default: return epoch <= flat_after_ ? falling(epoch) : floor_;
  }
}

std::uint64_t Sweep::smallest_epoch() const {
  if (select_ == Select::full || select_ == Select::fixed) return 0;
  // The share falls up to flat_after, and is `floor` behind it.
  return floor_ < falling(flat_after_) ? flat_after_ + 1 : flat_after_;
}

double Sweep::usage_until(std::uint64_t epoch) const {
  if (select_ == Select::full || select_ == Select::fixed) return share(0);
  double sum = 0;
  for (std::uint64_t n = 0; n <= std::min(epoch, flat_after_); ++n) sum += falling(n);
  if (epoch > flat_after_) sum += static_cast<double>(epoch - flat_after_) * floor_;
  return sum / (static_cast<double>(epoch) + 1);
}

}  // namespace batchwright
