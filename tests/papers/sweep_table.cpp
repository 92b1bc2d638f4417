#include "tests/papers/sweep_table.h"

#include <cstdlib>
#include <string>

#include "daemon/planning/planning.h"

using namespace batchwright;

namespace batchwright::testing {
namespace {

constexpr double kInfeasible = 0;

struct SweepLine {
  Select select;
  double usage;
  std::uint32_t flat_after;
  double floor, parameter;
  double last_falling;  ///< s(flat_after), to three places.
};

// The values that the definitions give for E = 16, to eight places.
constexpr SweepLine kSweepLines[] = {{Select::linear, 0.45, 7, 0.2, 0.08571429, 0.400},
                                     {Select::linear, 0.45, 9, 0.2, 0.08888889, 0.200},
                                     {Select::linear, 0.45, 11, 0.1, 0.07878788, 0.133},
                                     {Select::linear, 0.55, 7, 0.2, 0.02857143, 0.800},
                                     {Select::linear, 0.55, 9, 0.2, 0.05333333, 0.520},
                                     {Select::linear, 0.55, 11, 0.1, 0.05454545, 0.400},
                                     {Select::linear, 0.65, 7, 0.2, kInfeasible, 0},
                                     {Select::linear, 0.65, 9, 0.2, 0.01777778, 0.840},
                                     {Select::linear, 0.65, 11, 0.1, 0.03030303, 0.667},
                                     {Select::linear, 0.77, 7, 0.2, kInfeasible, 0},
                                     {Select::linear, 0.77, 9, 0.2, kInfeasible, 0},
                                     {Select::linear, 0.77, 11, 0.1, 0.00121212, 0.987},
                                     {Select::cosine, 0.45, 7, 0.2, 0.19528471, 0.202},
                                     {Select::cosine, 0.45, 9, 0.2, kInfeasible, 0},
                                     {Select::cosine, 0.45, 11, 0.1, kInfeasible, 0},
                                     {Select::cosine, 0.50, 9, 0.2, 0.15856710, 0.143},
                                     {Select::cosine, 0.55, 7, 0.2, 0.10867773, 0.724},
                                     {Select::cosine, 0.55, 9, 0.2, 0.13521797, 0.346},
                                     {Select::cosine, 0.55, 11, 0.1, 0.12566751, 0.187},
                                     {Select::cosine, 0.65, 7, 0.2, kInfeasible, 0},
                                     {Select::cosine, 0.65, 9, 0.2, 0.07590141, 0.776},
                                     {Select::cosine, 0.65, 11, 0.1, 0.09139265, 0.536},
                                     {Select::cosine, 0.77, 7, 0.2, kInfeasible, 0},
                                     {Select::cosine, 0.77, 9, 0.2, kInfeasible, 0},
                                     {Select::cosine, 0.77, 11, 0.1, 0.01780073, 0.981}};

/// Mean share of the sixteen epochs, one by one.
double mean_share(const PlanSettings& settings) {
  double sum = 0;
  for (std::uint64_t epoch = 0; epoch < 16; ++epoch) {
    sum += data_usage(settings, Epoch{epoch})->epoch;
  }
  return sum / 16;
}

}  // namespace

void sweep_table(Table& table) {
  table.title("Deng et al.: beta and lambda solved for 16 epochs; 0 where infeasible");
  for (const SweepLine& line : kSweepLines) {
    PlanSettings settings;
    settings.select = line.select;
    settings.usage = line.usage;
    settings.flat_after = line.flat_after;
    settings.floor = line.floor;
    settings.epochs = 16;
    char name[64];
    std::snprintf(name, sizeof name, "%s DUR %.2f l %u c %.1f",
                  line.select == Select::linear ? "s2" : "s3", line.usage, line.flat_after,
                  line.floor);
    const auto usage = data_usage(settings, Epoch{0});
    if (!usage && usage.error().code != ErrorCode::infeasible) std::abort();
    table.line(name, line.parameter, {usage ? usage->parameter : kInfeasible, 0}, 1e-8);
    if (!usage) continue;
    const double last = data_usage(settings, Epoch{line.flat_after})->epoch;
    table.line("  share of epoch l", line.last_falling, {last, 0}, 0.0005001);
    table.line("  mean share", line.usage, {mean_share(settings), 0}, 1e-12);
  }
}

}  // namespace batchwright::testing
