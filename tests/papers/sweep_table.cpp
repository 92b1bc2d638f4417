#include "tests/papers/sweep_table.h"

#include <cstdlib>
#include <string>

#include "daemon/planning/planning.h"

using namespace batchwright;

namespace batchwright::testing {
namespace {

constexpr double kInfeasible = 0;

struct Line {
  Select select;
  double usage;
  std::uint32_t flat_after;
  double floor, parameter;
};

// The values that the definitions give for E = 16, to eight places.
constexpr Line kLines[] = {
    {Select::linear, 0.45, 7, 0.2, 0.08571429},   {Select::linear, 0.45, 9, 0.2, 0.08888889},
    {Select::linear, 0.45, 11, 0.1, 0.07878788},  {Select::linear, 0.55, 7, 0.2, 0.02857143},
    {Select::linear, 0.55, 9, 0.2, 0.05333333},   {Select::linear, 0.55, 11, 0.1, 0.05454545},
    {Select::linear, 0.65, 7, 0.2, kInfeasible},  {Select::linear, 0.65, 9, 0.2, 0.01777778},
    {Select::linear, 0.65, 11, 0.1, 0.03030303},  {Select::linear, 0.77, 7, 0.2, kInfeasible},
    {Select::linear, 0.77, 9, 0.2, kInfeasible},  {Select::linear, 0.77, 11, 0.1, 0.00121212},
    {Select::cosine, 0.45, 7, 0.2, 0.19528471},   {Select::cosine, 0.45, 9, 0.2, kInfeasible},
    {Select::cosine, 0.45, 11, 0.1, kInfeasible}, {Select::cosine, 0.50, 9, 0.2, 0.15856710},
    {Select::cosine, 0.55, 7, 0.2, 0.10867773},   {Select::cosine, 0.55, 9, 0.2, 0.13521797},
    {Select::cosine, 0.55, 11, 0.1, 0.12566751},  {Select::cosine, 0.65, 7, 0.2, kInfeasible},
    {Select::cosine, 0.65, 9, 0.2, 0.07590141},   {Select::cosine, 0.65, 11, 0.1, 0.09139265},
    {Select::cosine, 0.77, 7, 0.2, kInfeasible},  {Select::cosine, 0.77, 9, 0.2, kInfeasible},
    {Select::cosine, 0.77, 11, 0.1, 0.01780073}};

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
  for (const Line& line : kLines) {
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
    if (usage) table.line("  mean share", line.usage, {mean_share(settings), 0}, 1e-12);
  }
}

}  // namespace batchwright::testing
