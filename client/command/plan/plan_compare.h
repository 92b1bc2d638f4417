#pragma once

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "client/command/plan/plan_lengths.h"
#include "daemon/planning/planning.h"

namespace batchwright {

/// A way to order and cut, and what it amounts to.
struct Strategy {
  std::string name;
  PlanSettings settings;
  PlanReport report;
  double randomness = 0;
  double relative_time = 0;  ///< Estimated for an epoch; random, fixed is 1.
};

/// The name of the plan as its settings are.
constexpr const char* kAsConfigured = "as configured";

/// The plan as configured, and every order, cut fixed, dynamic and by frames, with the other
/// settings as given. What the given cut does not say of batches' sizes is chosen to be about as
/// much. The second is random with fixed batches. An epoch's time is estimated as the padded frames
/// of each step's largest batch, and `step_cost` frames a step. Errors: those of plan_epoch().
Result<std::vector<Strategy>> compare_strategies(const PlanLengths& lengths,
                                                 const PlanSettings& settings,
                                                 std::uint64_t step_cost);

/// Padding against randomness when one setting of an order varies (Ge et al., figure 2).
struct Curve {
  std::string name;
  std::vector<Strategy> points;
};
Result<std::vector<Curve>> trade_off_curves(const PlanLengths& lengths,
                                            const PlanSettings& settings);

boost::json::array strategies_json(const std::vector<Strategy>& strategies);
void print_strategies(const std::vector<Strategy>& strategies);

}  // namespace batchwright
