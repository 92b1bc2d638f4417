#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "client/command/commands.h"
#include "client/command/data/configured_feed.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"
#include "client/command/plan/plan_compare.h"
#include "client/command/plan/plan_html.h"
#include "client/command/plan/plan_lengths.h"
#include "daemon/assembly/assembly.h"
#include "daemon/planning/planning.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// Mean over steps of the largest rank's padded frames by the mean of all ranks.
struct Imbalance {
  double grouped = 1;    ///< Imbalance with shuffle = groups.
  double ungrouped = 1;  ///< Imbalance with shuffle = batches.
};

/// The cache by which no row is made twice, where batches take parts of rows that are made.
struct RowCacheNeed {
  std::uint64_t bytes = 0;
  std::uint64_t has = 0;
};

/// An epoch's plan and the figures printed of it.
struct Planned {
  EpochPlan plan;
  PlanReport report;
  PlanHistograms histograms;
  Randomness randomness;
  DataUsage usage;
  std::optional<Imbalance> imbalance;  ///< Where steps have several batches that can be grouped.
  std::optional<RowCacheNeed> row_cache;
  double seconds = 0;  ///< Spent on the plan alone.
};

/// The lengths of all lists or datasets in the order of the call, which a plan depends on, and the
/// order file for them.
Result<PlanLengths> read_lengths(const PlanOptions& options, PlanSettings& settings) {
  PlanLengths lengths;
  if (options.lengths.empty() && options.datasets.empty()) {
    return Error{ErrorCode::invalid_argument, "plan needs --dataset, --lengths or --feed-config"};
  }
  for (const auto& file : options.lengths) {
    if (auto read = append_length_file(file, lengths); !read) return read.error();
  }
  if (!options.datasets.empty()) {
    auto read = append_datasets(options.datasets, lengths, settings);
    return read ? Result<PlanLengths>(std::move(lengths)) : read.error();
  }
  if (auto read = read_order(lengths.frames.size(), settings); !read) return read.error();
  return lengths;
}

/// Lengths of an epoch, which are those of the next one, too, unless a recipe draws them.
struct PlanData {
  PlanLengths lengths;
  PlanLengths next;
  PlanSettings settings;
  std::uint64_t frame_bytes = 0;      ///< Of rows that a recipe makes; 0: none does.
  std::uint64_t row_cache_bytes = 0;  ///< That the feed has.
};

/// Settings of the call go before those of the file.
Result<void> set_settings(const PlanOptions& options, PlanSettings& settings) {
  for (const auto& [name, value] : options.settings) {
    if (auto set = set_setting(settings, name, value); !set) return set;
  }
  return check_settings(settings);
}

/// What a feed would plan: data, recipe and settings are its own, except for those of the call.
Result<PlanData> read_feed(const PlanOptions& options) {
  const auto feed = open_configured_feed(options.config, options.feed);
  if (!feed) return feed.error();
  PlanData data;
  data.settings = feed->config.served.plan;
  if (auto set = set_settings(options, data.settings); !set) return set.error();
  if (auto read = read_order(*feed->snapshot, data.settings); !read) return read.error();
  if (feed->recipe) {
    // As the feed does with rows that have no frame.
    const bool listed = data.settings.order == Order::file;
    if (!listed) data.settings.min_length = std::max(data.settings.min_length, 1U);
    data.frame_bytes = feed->recipe->frame_bytes();
    data.row_cache_bytes = feed->config.served.row_cache_bytes;
  }
  const auto shards = feed->snapshot->shard_sequences();
  for (PlanLengths* each : {&data.lengths, &data.next}) {
    auto frames = feed->lengths(Epoch{options.epoch + (each == &data.next ? 1 : 0)});
    if (!frames) return frames.error();
    each->frames = *std::move(frames);
    each->datasets.assign(shards.begin(), shards.end());
  }
  return data;
}

Result<PlanData> read_data(const PlanOptions& options) {
  if (!options.config.empty()) return read_feed(options);
  PlanData data;
  if (auto set = set_settings(options, data.settings); !set) return set.error();
  auto lengths = read_lengths(options, data.settings);
  if (!lengths) return lengths.error();
  data.lengths = *lengths;
  data.next = *std::move(lengths);
  return data;
}

Result<std::optional<Imbalance>> imbalance_of(const PlanLengths& lengths,
                                              const PlanSettings& settings, Epoch epoch) {
  // One rank has none to wait for, and lanes and an order file make the steps themselves.
  if (settings.world == 1 || settings.lanes != 0 || settings.order == Order::file) {
    return std::optional<Imbalance>();
  }
  // Both, whichever is set: the two figures are what the choice is made by.
  const auto with = [&](Shuffle shuffle) {
    PlanSettings shuffled = settings;
    shuffled.shuffle = shuffle;
    return plan_epoch(lengths.frames, shuffled, epoch, lengths.datasets);
  };
  const auto grouped = with(Shuffle::groups);
  if (!grouped) return grouped.error();
  const auto ungrouped = with(Shuffle::batches);
  if (!ungrouped) return ungrouped.error();
  return std::optional<Imbalance>(
      {report_plan(*grouped).rank_imbalance, report_plan(*ungrouped).rank_imbalance});
}

std::optional<RowCacheNeed> row_cache_need(const PlanData& data, const EpochPlan& plan) {
  if (data.frame_bytes == 0 || !makes_parts(data.settings)) return std::nullopt;
  // What rows say of their draws is a few bytes each.
  constexpr std::uint64_t kDrawnBytes = 16;
  return RowCacheNeed{most_open_frames(plan, data.lengths.frames) * data.frame_bytes +
                          data.lengths.frames.size() * kDrawnBytes,
                      data.row_cache_bytes};
}

Result<Planned> plan_all(const PlanData& data, Epoch epoch) {
  const PlanLengths& lengths = data.lengths;
  const PlanSettings& settings = data.settings;
  const auto begin = std::chrono::steady_clock::now();
  auto plan = plan_epoch(lengths.frames, settings, epoch, lengths.datasets);
  // The time of one plan, which is what a feed spends at each epoch.
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  if (!plan) return plan.error();
  // Randomness compares two epochs that follow each other.
  const auto next =
      plan_epoch(data.next.frames, settings, Epoch{epoch.value + 1}, data.next.datasets);
  if (!next) return next.error();
  const auto usage = data_usage(settings, epoch);
  if (!usage) return usage.error();
  const auto imbalance = imbalance_of(lengths, settings, epoch);
  if (!imbalance) return imbalance.error();
  return Planned{
      *plan,  report_plan(*plan), plan_histograms(*plan, 20),  measure_randomness(*plan, *next),
      *usage, *imbalance,         row_cache_need(data, *plan), spent.count()};
}

json::object report_json(const Planned& planned, Epoch epoch) {
  const PlanReport& report = planned.report;
  json::object all{{"epoch", epoch.value}, {"sequences", report.sequences}};
  add_counts(all, planned.plan.counts());
  add_size(all, report);
  all["world"] = planned.plan.world();
  add_padding(all, report);
  add_usage(all, planned.usage);
  add_extremes(all, report);
  all["randomness"] = planned.randomness.figure();
  all["shared_again"] = planned.randomness.shared_again;
  all["shared_by_chance"] = planned.randomness.shared_by_chance;
  all["seconds"] = planned.seconds;
  // Without a figure there is no key: a reader is not to take a 1 for measured.
  if (planned.imbalance) {
    all["rank_imbalance_grouped"] = planned.imbalance->grouped;
    all["rank_imbalance_ungrouped"] = planned.imbalance->ungrouped;
  }
  if (planned.row_cache) {
    all["row_cache_needed_bytes"] = planned.row_cache->bytes;
    all["row_cache_bytes"] = planned.row_cache->has;
  }
  json::array limits;
  for (const std::uint32_t limit : planned.plan.bucket_limits()) limits.emplace_back(limit);
  if (!limits.empty()) all["bucket_limits"] = std::move(limits);
  add_histograms(all, planned.histograms);
  return all;
}

/// The batches as lists, each of what `print_row` prints. Written as it goes: a plan may be large.
template <class PrintRow>
void print_batches(const EpochPlan& plan, const PrintRow& print_row) {
  // Filled again for each batch, with the memory of the last one.
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    fmt::print("{}", index == 0 ? "[" : ",[");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i > 0) fmt::print(",");
      print_row(rows[i]);
    }
    fmt::print("]");
  }
}

void print_json(const Planned& planned, const PlanOptions& options, const PlanSettings& settings) {
  std::string text = json_text(report_json(planned, Epoch{options.epoch}));
  // The lists follow as they are made (print_batches()), and the brace after them.
  if (!options.batches) return fmt::print("{}\n", text);
  text.pop_back();  // the closing brace
  fmt::print("{},\"batch_list\":[", text);
  print_batches(planned.plan, [](const Row& row) { fmt::print("{}", row.ordinal); });
  // An ordinal alone does not say which part of a sequence a row is.
  if (makes_parts(settings)) {
    fmt::print("],\"row_list\":[");
    print_batches(planned.plan, [](const Row& row) {
      fmt::print("[{},{},{},{}]", row.ordinal, row.start, row.length, row.flags);
    });
  }
  if (settings.order_rows && !settings.order_rows->weights.empty()) {
    fmt::print("],\"weight_list\":[");
    print_batches(planned.plan, [](const Row& row) { fmt::print("{}", row.weight); });
  }
  fmt::print("]}}\n");
}

/// Without the empty ends: of few values most bars are empty.
void print_bars(const char* title, const std::vector<HistogramBar>& all) {
  const auto is_full = [](const HistogramBar& bar) { return bar.count != 0; };
  const auto first = std::find_if(all.begin(), all.end(), is_full);
  const auto last = std::find_if(all.rbegin(), std::make_reverse_iterator(first), is_full).base();
  const std::vector<HistogramBar> bars(first, last);
  // At least 1, as it divides.
  std::uint64_t most = 1;
  for (const HistogramBar& bar : bars) most = std::max(most, bar.count);
  fmt::print("{}\n", title);
  for (const HistogramBar& bar : bars) {
    fmt::print("  {:>9} .. {:<9} {:>10} {}\n", bar.from, bar.from + bar.width - 1, bar.count,
               std::string(static_cast<std::size_t>(40 * bar.count / most), '#'));
  }
}

void print_text(const Planned& planned, const PlanOptions& options) {
  const PlanReport& report = planned.report;
  const PlanCounts counts = planned.plan.counts();
  fmt::print("epoch            {}\n", options.epoch);
  fmt::print("sequences        {} delivered, {} selected of {} ({} left out by length)\n",
             report.sequences, counts.selected, counts.kept, counts.left_out);
  fmt::print("usage            {:.4f} this epoch, {:.4f} so far, {:.4f} over all epochs\n",
             planned.usage.epoch, planned.usage.so_far, planned.usage.all);
  // 0 stands for settings that use no sweep.
  if (planned.usage.parameter != 0) {
    fmt::print("sweep parameter  {:.8f}\n", planned.usage.parameter);
  }
  fmt::print("batches          {} in {} steps of {}\n", report.batches, report.steps,
             planned.plan.world());
  if (counts.cut_by_padding) {
    fmt::print("cut by padding   {} batches (max_padded)\n", *counts.cut_by_padding);
  }
  fmt::print("frames           {}, {} with padding\n", report.frames, report.padded_frames);
  fmt::print("padded share     {:.4f} %\n", 100 * report.padded_share);
  fmt::print("ZPR              {:.4f} %\n", 100 * report.zpr);
  fmt::print("ABL              {:.4f} frames\n", report.abl);
  fmt::print("APR              {:.4f} % (standard deviation {:.4f})\n", 100 * report.apr,
             100 * report.apr_deviation);
  fmt::print("largest batch    {} frames with padding; most rows {}\n", report.largest_batch_frames,
             report.largest_batch_rows);
  if (planned.row_cache) {
    fmt::print("row cache        {} bytes make no row twice; the feed has row_cache = {}\n",
               planned.row_cache->bytes, planned.row_cache->has);
  }
  if (planned.plan.world() > 1) {
    fmt::print("rank imbalance   {:.4f} largest / mean padded frames of a step's ranks\n",
               report.rank_imbalance);
  }
  if (planned.imbalance) {
    fmt::print("                 {:.4f} with shuffle = groups, {:.4f} with shuffle = batches\n",
               planned.imbalance->grouped, planned.imbalance->ungrouped);
  }
  fmt::print("randomness       {:.4f} (of pairs in a batch {:.6f} meet again, {:.6f} by chance)\n",
             planned.randomness.figure(), planned.randomness.shared_again,
             planned.randomness.shared_by_chance);
  if (!planned.plan.bucket_limits().empty()) {
    fmt::print("bucket limits   ");
    for (const std::uint32_t limit : planned.plan.bucket_limits()) fmt::print(" {}", limit);
    fmt::print("\n");
  }
  print_bars("rows of a batch", planned.histograms.batch_sizes);
  print_bars("frames of a row", planned.histograms.lengths);
}

/// The batches as text: one batch a line.
void print_batch_lines(const EpochPlan& plan) {
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fmt::print("{}{}", i == 0 ? "" : " ", rows[i].ordinal);
    }
    fmt::print("\n");
  }
}

/// The table over all strategies, the page about them, or both.
Result<void> compare(const PlanLengths& lengths, const PlanSettings& settings,
                     const PlanOptions& options) {
  const auto strategies = compare_strategies(lengths, settings, options.step_cost);
  if (!strategies) return strategies.error();
  if (!options.html.empty()) {
    if (auto written = write_plan_page(options.html, lengths, settings, *strategies); !written) {
      return written;
    }
  }
  if (options.compare && options.json) {
    const json::object all{{"strategies", strategies_json(*strategies)}};
    print_json_line(all);
  } else if (options.compare) {
    print_strategies(*strategies);
  }
  return {};
}

}  // namespace

int run_plan(const PlanOptions& options) {
  const auto data = read_data(options);
  if (!data) return fail(data.error());
  const PlanSettings& settings = data->settings;
  // With --html alone the plan at hand is printed as well; with --compare the table stands for it.
  if (options.compare || !options.html.empty()) {
    if (const auto done = compare(data->lengths, settings, options); !done)
      return fail(done.error());
    if (options.compare) return kDone;
  }
  // To stderr, so that standard output stays JSON.
  if (const std::string note = plan_note(settings); !note.empty()) {
    fmt::print(stderr, "batchwright: note: {}\n", note);
  }
  const auto planned = plan_all(*data, Epoch{options.epoch});
  if (!planned) return fail(planned.error());
  if (options.json) {
    print_json(*planned, options, settings);
  } else {
    print_text(*planned, options);
    if (options.batches) print_batch_lines(planned->plan);
  }
  return kDone;
}

}  // namespace batchwright
