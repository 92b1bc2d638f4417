#include "client/command/plan/plan_compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <limits>

namespace batchwright {
namespace {

/// Only what does not concern order and cut.
PlanSettings common_settings(const PlanSettings& given) {
  PlanSettings common = given;
  const PlanSettings plain;
  // check_settings() refuses what has no effect, so the settings of other orders have to go.
  common.order = plain.order;
  common.randomization = plain.randomization;
  common.bins = common.bucket_size = common.bucket_span = common.bucket_count = 0;
  common.bucket_boundaries.clear();
  common.order_file.clear();
  common.row_weight.clear();
  common.order_rows = nullptr;
  return common;
}

bool is_by_rows(Cut cut) { return cut == Cut::fixed || cut == Cut::dynamic || cut == Cut::file; }

/// Rows of a batch of such a cut; of an order file's batches, the mean.
std::uint32_t rows_by(const PlanSettings& settings) {
  if (settings.cut != Cut::file) return settings.size;
  const OrderRows& order = *settings.order_rows;
  return static_cast<std::uint32_t>(std::max<std::size_t>(order.rows.size() / order.lines(), 1));
}

/// How large the batches of each cut are.
struct Sizes {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;
};

PlanSettings cut_as(PlanSettings settings, Cut cut, const Sizes& sizes) {
  const PlanSettings plain;
  settings.cut = cut;
  settings.size = is_by_rows(cut) ? sizes.rows : plain.size;
  settings.max_frames = is_by_rows(cut) ? 0 : sizes.frames;
  // A fixed cut has no rule, and these two belong to cuts that have no row.
  settings.rule = cut == Cut::fixed ? plain.rule : settings.rule;
  settings.max_padded = 0;
  settings.quadratic_scale = 0;
  return settings;
}

Result<Strategy> evaluate(const PlanLengths& lengths, std::string name,
                          const PlanSettings& settings) {
  const auto plan = plan_epoch(lengths.frames, settings, Epoch{0}, lengths.datasets);
  if (!plan) return plan.error();
  // Randomness compares two epochs that follow each other.
  const auto next = plan_epoch(lengths.frames, settings, Epoch{1}, lengths.datasets);
  if (!next) return next.error();
  return Strategy{std::move(name), settings, report_plan(*plan),
                  measure_randomness(*plan, *next).figure(), 0};
}

/// What the strategies are chosen for: the rows that each of two epochs has, their lengths, and how
/// large batches are.
struct Shape {
  std::uint64_t rows = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t longest = 0;
  std::uint64_t frames = 0;  ///< Of the epochs together, and their rows.
  std::uint64_t all_rows = 0;
  Sizes sizes;
};

/// The given figure, and what is about as much of the other: of cuts by frames the rows that
/// `max_frames` has of mean length, of cuts by rows as many frames as those take.
Sizes sizes_of(const Shape& shape, const PlanSettings& settings) {
  const std::uint64_t mean =
      std::max<std::uint64_t>(shape.frames / std::max<std::uint64_t>(shape.all_rows, 1), 1);
  // The longest row has to fit.
  if (is_by_rows(settings.cut)) {
    const std::uint32_t rows = rows_by(settings);
    return {rows, std::max<std::uint64_t>(mean * rows, shape.longest)};
  }
  const std::uint64_t most = settings.max_size != 0 ? settings.max_size : 1'000'000;
  const std::uint64_t rows = std::clamp<std::uint64_t>(settings.max_frames / mean, 1, most);
  const std::uint32_t unit = settings.size_multiple;
  return {std::max(static_cast<std::uint32_t>(rows) / unit * unit, unit), settings.max_frames};
}

/// The shape of a random order, cut fixed.
Result<Shape> shape_of(const PlanLengths& lengths, const PlanSettings& given) {
  // Batches as small as can be, where their rows are not given: all of them are in the epoch.
  const std::uint32_t rows_of_batch = is_by_rows(given.cut) ? rows_by(given) : given.size_multiple;
  const PlanSettings settings = cut_as(common_settings(given), Cut::fixed, {rows_of_batch, 0});
  Shape shape;
  // Both epochs that evaluate() plans: with a selection of data they may differ in rows.
  for (const std::uint64_t epoch : {0u, 1u}) {
    const auto plan = plan_epoch(lengths.frames, settings, Epoch{epoch}, lengths.datasets);
    if (!plan) return plan.error();
    std::uint64_t rows = 0;
    for (std::uint64_t index = 0; index < plan->batches(); ++index) {
      const BatchFigures batch = plan->figures(BatchIndex{index});
      rows += batch.rows;
      shape.frames += batch.frames;
      shape.longest = std::max(shape.longest, batch.batch_length);
    }
    shape.rows = std::min(shape.rows, rows);
    shape.all_rows += rows;
  }
  shape.sizes = sizes_of(shape, given);
  return shape;
}

/// An order with a value for its one setting, and the name it has in the table.
struct Choice {
  std::string name;
  Order order;
  double value = 0;  ///< The value of the order's one setting.
};

PlanSettings ordered(PlanSettings settings, const Choice& choice) {
  // All but semi-sorted take a whole number; its value is used as it is.
  const auto whole = static_cast<std::uint32_t>(choice.value);
  settings.order = choice.order;
  switch (choice.order) {
    case Order::semi_sorted: settings.randomization = choice.value; break;
    case Order::bucket: settings.bucket_size = whole; break;
    case Order::bucket_span: settings.bucket_span = whole; break;
    case Order::bucket_optimal: settings.bucket_count = whole; break;
    case Order::alternated: settings.bins = whole; break;
    default: break;
  }
  return settings;
}

/// All orders, with values that suit the rows.
std::vector<Choice> choices(const Shape& shape) {
  std::vector<Choice> all = {{"random", Order::random}, {"sorted", Order::sorted}};
  for (const double lrf : {0.05, 0.1, 0.2}) {
    all.push_back({fmt::format("semi-sorted {}", lrf), Order::semi_sorted, lrf});
  }
  for (const std::size_t size : {std::size_t{256}, std::size_t{1024}}) {
    // A bucket of all rows is a random order once more.
    if (size < shape.rows) {
      all.push_back({fmt::format("bucket {}", size), Order::bucket, static_cast<double>(size)});
    }
  }
  // Sixteen spans over the lengths there are; one frame where those are short.
  const std::uint32_t span = std::max(shape.longest / 16, 1u);
  all.push_back(
      {fmt::format("bucket-span {}", span), Order::bucket_span, static_cast<double>(span)});
  // Fewer rows than buckets cannot be planned, and would end the whole table.
  if (shape.rows >= 16) all.push_back({"bucket-optimal 16", Order::bucket_optimal, 16});
  for (const std::size_t bins : {std::size_t{8}, std::size_t{64}}) {
    if (bins < shape.rows) {
      all.push_back(
          {fmt::format("alternated {}", bins), Order::alternated, static_cast<double>(bins)});
    }
  }
  return all;
}

/// Estimated time of an epoch, in frames: each step waits for its slowest rank.
double step_time(const PlanReport& report, std::uint64_t step_cost) {
  return static_cast<double>(report.slowest_frames) +
         static_cast<double>(step_cost) * static_cast<double>(report.steps);
}

Result<Curve> curve_of(const PlanLengths& lengths, const PlanSettings& settings, std::string name,
                       const std::vector<Choice>& points) {
  Curve curve{std::move(name), {}};
  for (const Choice& choice : points) {
    auto made = evaluate(lengths, choice.name, ordered(settings, choice));
    if (!made) return made.error();
    curve.points.push_back(std::move(*made));
  }
  return curve;
}

}  // namespace

Result<std::vector<Strategy>> compare_strategies(const PlanLengths& lengths,
                                                 const PlanSettings& settings,
                                                 std::uint64_t step_cost) {
  if (settings.lanes != 0) {
    return Error{ErrorCode::invalid_argument,
                 "lanes make the batches themselves: nothing to compare"};
  }
  const PlanSettings common = common_settings(settings);
  const auto shape = shape_of(lengths, settings);
  if (!shape) return shape.error();
  auto configured = evaluate(lengths, kAsConfigured, settings);
  if (!configured) return configured.error();
  std::vector<Strategy> all = {std::move(*configured)};
  for (const auto& [cut, cut_name] :
       {std::pair(Cut::fixed, "fixed"), std::pair(Cut::dynamic, "dynamic"),
        std::pair(Cut::frames, "frames")}) {
    const bool is_given =
        is_by_rows(cut) == is_by_rows(settings.cut) && settings.order != Order::file;
    for (const Choice& choice : choices(*shape)) {
      auto made = evaluate(lengths, fmt::format("{}, {}", choice.name, cut_name),
                           ordered(cut_as(common, cut, shape->sizes), choice));
      // Of sizes that were not chosen it says little, and the others are of use.
      if (!made && !is_given && made.error().code == ErrorCode::infeasible) continue;
      if (!made) return made.error();
      all.push_back(std::move(*made));
    }
  }
  if (all.size() == 1) return all;
  // The second is random with fixed batches, as choices() and the loop above have it.
  const double random_time = step_time(all[1].report, step_cost);
  for (Strategy& strategy : all) {
    strategy.relative_time = step_time(strategy.report, step_cost) / random_time;
  }
  return all;
}

Result<std::vector<Curve>> trade_off_curves(const PlanLengths& lengths,
                                            const PlanSettings& settings) {
  const auto shape = shape_of(lengths, settings);
  if (!shape) return shape.error();
  const PlanSettings fixed = cut_as(common_settings(settings), Cut::fixed, shape->sizes);
  const auto rows = static_cast<double>(shape->rows);
  // Sizes and bins double from point to point: a few plans span the whole range.
  std::vector<Choice> lrf, sizes, bins;
  for (const double value : {0., 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1., 2., 5., 20.}) {
    lrf.push_back({fmt::format("{}", value), Order::semi_sorted, value});
  }
  for (double value = fixed.size; value < rows; value *= 2) {
    sizes.push_back({fmt::format("{}", value), Order::bucket, value});
  }
  for (double value = 1; value * fixed.size <= rows; value *= 2) {
    bins.push_back({fmt::format("{}", value), Order::alternated, value});
  }
  std::vector<Curve> curves;
  for (auto& [name, points] :
       {std::pair{"semi-sorted, by LRF", lrf}, std::pair{"bucket, by size", sizes},
        std::pair{"alternated, by bins", bins}}) {
    auto curve = curve_of(lengths, fixed, name, points);
    if (!curve) return curve.error();
    curves.push_back(std::move(*curve));
  }
  return curves;
}

boost::json::array strategies_json(const std::vector<Strategy>& strategies) {
  boost::json::array all;
  for (const Strategy& s : strategies) {
    all.push_back(boost::json::object{{"name", s.name},
                                      {"batches", s.report.batches},
                                      {"steps", s.report.steps},
                                      {"padded_frames", s.report.padded_frames},
                                      {"zpr", s.report.zpr},
                                      {"abl", s.report.abl},
                                      {"padded_share", s.report.padded_share},
                                      {"rank_imbalance", s.report.rank_imbalance},
                                      {"randomness", s.randomness},
                                      {"relative_time", s.relative_time}});
  }
  return all;
}

void print_strategies(const std::vector<Strategy>& strategies) {
  fmt::print("{:<26} {:>8} {:>8} {:>9} {:>9} {:>9} {:>10} {:>7}\n", "", "batches", "steps", "ZPR %",
             "ABL", "padded %", "randomness", "time");
  for (const Strategy& s : strategies) {
    fmt::print("{:<26} {:>8} {:>8} {:>9.3f} {:>9.2f} {:>9.3f} {:>10.4f} {:>7.3f}\n", s.name,
               s.report.batches, s.report.steps, 100 * s.report.zpr, s.report.abl,
               100 * s.report.padded_share, s.randomness, s.relative_time);
  }
  fmt::print("time: estimated for an epoch, relative to random with fixed batches\n");
}

}  // namespace batchwright
