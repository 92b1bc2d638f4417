#include "client/command/plan/plan_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "client/command/page.h"

namespace batchwright {

// The file's bytes, embedded at build time.
extern const std::string_view kPlanPage;

namespace {

namespace json = boost::json;

constexpr std::uint64_t kPoints = 1500;  // of one picture of an order

/// Lengths along the order of an epoch, before its batches are shuffled, at most kPoints of them.
Result<json::object> order_picture(const PlanLengths& lengths, PlanSettings settings) {
  // Shuffled batches would hide the order that the picture is to show.
  settings.shuffle = Shuffle::off;
  const auto plan = plan_epoch(lengths.frames, settings, Epoch{0}, lengths.datasets);
  if (!plan) return plan.error();
  const std::uint64_t all = report_plan(*plan).rows;
  // Rounded up: never more than kPoints.
  const std::uint64_t every = (all + kPoints - 1) / kPoints;
  json::array points;
  std::vector<Row> rows;
  std::uint64_t position = 0;
  for (std::uint64_t index = 0; index < plan->batches(); ++index) {
    plan->rows(BatchIndex{index}, rows);
    for (const Row& row : rows) {
      if (position++ % every == 0) points.push_back(json::array{position - 1, row.length});
    }
  }
  return json::object{{"rows", all}, {"points", std::move(points)}};
}

json::array bars_json(const std::vector<HistogramBar>& bars) {
  json::array all;
  for (const HistogramBar& bar : bars) {
    const std::string range = bar.width == 1
                                  ? fmt::format("{}", bar.from)
                                  : fmt::format("{}-{}", bar.from, bar.from + bar.width - 1);
    all.push_back(json::array{range, bar.count});
  }
  return all;
}

Result<json::array> pictures_json(const PlanLengths& lengths,
                                  const std::vector<Strategy>& strategies) {
  json::array all;
  for (const Strategy& strategy : strategies) {
    // The cut does not change the order: one picture an order.
    if (strategy.settings.cut != Cut::fixed || strategy.name == kAsConfigured) continue;
    auto picture = order_picture(lengths, strategy.settings);
    if (!picture) return picture.error();
    // Names are "order, cut" (compare_strategies()), and a picture is of the order alone.
    (*picture)["name"] = strategy.name.substr(0, strategy.name.find(','));
    all.push_back(std::move(*picture));
  }
  return all;
}

json::object figures_json(const PlanReport& report) {
  return {{"batches", report.batches},
          {"steps", report.steps},
          {"padded_frames", report.padded_frames},
          {"padded_share", report.padded_share},
          {"zpr", report.zpr},
          {"abl", report.abl}};
}

/// What the page draws.
Result<json::object> page_data(const PlanLengths& lengths, const PlanSettings& settings,
                               const std::vector<Strategy>& strategies) {
  const auto plan = plan_epoch(lengths.frames, settings, Epoch{0}, lengths.datasets);
  if (!plan) return plan.error();
  auto pictures = pictures_json(lengths, strategies);
  if (!pictures) return pictures.error();
  const auto curves = trade_off_curves(lengths, settings);
  if (!curves) return curves.error();
  const PlanHistograms histograms = plan_histograms(*plan, 40);
  const PlanReport report = report_plan(*plan);
  json::array curve_list;
  for (const Curve& curve : *curves) {
    curve_list.push_back(
        json::object{{"name", curve.name}, {"points", strategies_json(curve.points)}});
  }
  std::string used;
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(settings, row.name);
    // What differs from its default, and the order in any case.
    if (value != get_setting(PlanSettings{}, row.name) || row.name == "order") {
      used += fmt::format("{}{} = {}", used.empty() ? "" : ", ", row.name, value);
    }
  }
  return json::object{{"sequences", lengths.frames.size()},
                      {"settings", std::move(used)},
                      {"plan", figures_json(report)},
                      {"pictures", std::move(*pictures)},
                      {"batch_sizes", bars_json(histograms.batch_sizes)},
                      {"lengths", bars_json(histograms.lengths)},
                      {"curves", std::move(curve_list)},
                      {"strategies", strategies_json(strategies)}};
}

}  // namespace

Result<void> write_plan_page(const std::filesystem::path& file, const PlanLengths& lengths,
                             const PlanSettings& settings,
                             const std::vector<Strategy>& strategies) {
  const auto data = page_data(lengths, settings, strategies);
  if (!data) return data.error();
  return write_page(file, kPlanPage, *data);
}

}  // namespace batchwright
