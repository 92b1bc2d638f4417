#include <fmt/core.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "client/command/bench/bench_clients.h"
#include "client/command/bench/bench_memcpy.h"
#include "client/command/bench/bench_producers.h"
#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/find_pages.h"
#include "client/command/http_get.h"
#include "client/command/keys.h"
#include "client/command/output.h"
#include "client/library/batchwright/client.hpp"

// Measures in this order: rows of epoch 0, which also warms everything up; memcpy of these rows;
// the clients, from epoch 1 on; memcpy again. The better memcpy counts.

namespace batchwright {
namespace {

namespace json = boost::json;

/// What the rows for the baseline may take together, and how long it may take to learn them.
constexpr std::uint64_t kMostBaselineBytes = std::uint64_t{4} << 30;
constexpr std::chrono::seconds kWarmUp{20};

/// The part of /stats that is of interest here.
struct DaemonFigures {
  std::vector<std::string> dataset;
  std::uint64_t arena_bytes = 0;
  std::uint64_t assembled = 0;
  std::uint64_t delivered = 0;
  double cpu_seconds = 0;
  /// The daemon's way to copy, by the length of a run; empty where it does not say.
  json::object copy;
};

Result<DaemonFigures> parse_stats(const std::string& text, const std::string& feed) try {
  // at() throws where a daemon of another version has other keys; that ends below.
  const json::value page = json::parse(text);
  for (const json::value& each : page.at("feeds").as_array()) {
    if (each.at("name").as_string() != feed) continue;
    DaemonFigures figures;
    for (const json::value& shard : each.at("dataset").as_array()) {
      figures.dataset.emplace_back(shard.as_string());
    }
    figures.arena_bytes = each.at("arena_bytes").to_number<std::uint64_t>();
    const json::value& counters = each.at("counters");
    figures.assembled = counters.at("batches_assembled").to_number<std::uint64_t>();
    figures.delivered = counters.at("batches_delivered").to_number<std::uint64_t>();
    figures.cpu_seconds = page.at("cpu_seconds").to_number<double>();
    if (const auto* copy = page.as_object().if_contains("copy")) {
      figures.copy = copy->at("chosen").as_object();
    }
    return figures;
  }
  return Error{ErrorCode::not_found,
               fmt::format("the daemon's stats know no feed \"{}\": do --stats and --endpoint "
                           "name the same daemon?",
                           feed)};
} catch (const std::exception& error) {
  return Error{ErrorCode::malformed_message, fmt::format("the daemon's stats: {}", error.what())};
}

Result<DaemonFigures> read_stats(const BenchOptions& options) {
  // A daemon under full load may take a while; five seconds without an answer is no daemon.
  const auto page = http_get(options.stats, "/stats", std::chrono::seconds(5));
  if (page) return parse_stats(*page, options.feed);
  return Error{page.error().code, fmt::format("{}; bench needs the daemon's stats, see --stats",
                                              page.error().message)};
}

/// Settles where the daemon's pages are.
Result<void> find_stats(BenchOptions& options) {
  if (!options.stats.empty()) return {};
  const auto pages = find_pages(options.endpoint);
  if (!pages) return pages.error();
  options.stats = pages->front();
  return {};
}

struct BenchFigures {
  Taken taken;
  double memcpy_rate = 0;
  double cpu_seconds = 0;
  std::uint64_t assembled = 0;
  std::uint64_t delivered = 0;
  json::object copy;

  /// Real bytes a second; padding is not counted, as memcpy does not copy it.
  double rate() const { return static_cast<double>(taken.bytes) / taken.seconds; }
};

Result<BenchFigures> measure(BenchOptions options) {
  // Cheap checks first: a wrong key or address, or what is lacking, is told before anything is
  // measured.
  const std::size_t threads = std::max<std::size_t>(options.clients, options.memcpy_threads);
  if (auto room = room_for_threads(threads, "bench"); !room) return room.error();
  const auto connect = connect_options(options.keys);
  if (!connect) return connect.error();
  if (auto found = find_stats(options); !found) return found.error();
  const auto known = read_stats(options);
  if (!known) return known.error();
  const auto rows = record_rows(options, *connect, kMostBaselineBytes, kWarmUp);
  auto baseline =
      MemcpyBaseline::prepare(options.dataset.empty() ? known->dataset : options.dataset, rows,
                              known->arena_bytes, options.memcpy_threads);
  if (!baseline) return baseline.error();
  BenchFigures figures;
  figures.memcpy_rate = baseline->measure();
  // Right before and after the clients, so that warming up is not in the differences.
  const auto before = read_stats(options);
  if (!before) return before.error();
  // Epoch 1: part of epoch 0 may still lie assembled in the slots, and would come for free.
  auto taken = run_clients(options, *connect, 1);
  if (!taken) return taken.error();
  figures.taken = *taken;
  const auto after = read_stats(options);
  if (!after) return after.error();
  // Twice, for other work on the machine can only make it look worse.
  figures.memcpy_rate = std::max(figures.memcpy_rate, baseline->measure());
  figures.cpu_seconds = after->cpu_seconds - before->cpu_seconds;
  figures.assembled = after->assembled - before->assembled;
  figures.delivered = after->delivered - before->delivered;
  figures.copy = after->copy;
  return figures;
}

void print_json(const BenchOptions& options, const BenchFigures& figures) {
  json::object line;
  line["clients"] = options.clients;
  line["batches"] = figures.taken.batches;
  line["sequences"] = figures.taken.sequences;
  line["bytes"] = figures.taken.bytes;
  line["padded_bytes"] = figures.taken.padded_bytes;
  line["seconds"] = figures.taken.seconds;
  line["waited_seconds"] = figures.taken.waited_seconds;
  line["bytes_per_second"] = figures.rate();
  line["memcpy_bytes_per_second"] = figures.memcpy_rate;
  line["memcpy_threads"] = options.memcpy_threads;
  line["ratio"] = figures.memcpy_rate > 0 ? figures.rate() / figures.memcpy_rate : 0.0;
  line["daemon_cpu_seconds"] = figures.cpu_seconds;
  line["assembled"] = figures.assembled;
  line["delivered"] = figures.delivered;
  line["copy"] = figures.copy;
  print_json_line(line);
}

void print_table(const BenchOptions& options, const BenchFigures& figures) {
  const auto row = [](const char* name, const std::string& value) {
    fmt::print("{:24} {:>16}\n", name, value);
  };
  // A share of all clients' time: the sum is over the clients, the seconds are one client's.
  const double waited =
      figures.taken.waited_seconds / (figures.taken.seconds * static_cast<double>(options.clients));
  row("clients", std::to_string(options.clients));
  row("batches", std::to_string(figures.taken.batches));
  row("real bytes, GB", fmt::format("{:.3f}", static_cast<double>(figures.taken.bytes) / 1e9));
  row("seconds", fmt::format("{:.2f}", figures.taken.seconds));
  row("GB/s", fmt::format("{:.3f}", figures.rate() / 1e9));
  const std::string threads =
      options.memcpy_threads == 1 ? "" : fmt::format(" of {}", options.memcpy_threads);
  row(fmt::format("memcpy{}, GB/s", threads).c_str(),
      fmt::format("{:.3f}", figures.memcpy_rate / 1e9));
  row("ratio", fmt::format("{:.3f}", figures.rate() / figures.memcpy_rate));
  row("clients waited", fmt::format("{:.1f} %", 100.0 * waited));
  row("daemon's CPU seconds", fmt::format("{:.2f}", figures.cpu_seconds));
  row("assembled", std::to_string(figures.assembled));
  row("delivered", std::to_string(figures.delivered));
  for (const auto& [runs, way] : figures.copy) {
    row(fmt::format("copy, {} runs", std::string_view(runs)).c_str(),
        std::string(std::string_view(way.as_string())));
  }
}

void print_live(const BenchOptions& options, const PushedAndTaken& all, double cpu_seconds) {
  const double rate = static_cast<double>(all.pushed_bytes) / all.seconds;
  const double sequences = static_cast<double>(all.pushed) / all.seconds;
  if (options.json) {
    return print_json_line(json::object{{"producers", options.producers},
                                        {"clients", options.clients},
                                        {"sequences", all.pushed},
                                        {"bytes", all.pushed_bytes},
                                        {"seconds", all.seconds},
                                        {"sequences_per_second", sequences},
                                        {"bytes_per_second", rate},
                                        {"slowest_share", all.slowest_share},
                                        {"batches", all.batches},
                                        {"sequences_taken", all.taken},
                                        {"bytes_taken", all.taken_bytes},
                                        {"memcpy_bytes_per_second", all.memcpy_rate},
                                        {"ratio", rate / all.memcpy_rate},
                                        {"daemon_cpu_seconds", cpu_seconds}});
  }
  const auto row = [](const char* name, const std::string& value) {
    fmt::print("{:24} {:>16}\n", name, value);
  };
  row("producers", std::to_string(options.producers));
  row("sequences pushed", std::to_string(all.pushed));
  row("GB pushed", fmt::format("{:.3f}", static_cast<double>(all.pushed_bytes) / 1e9));
  row("seconds", fmt::format("{:.2f}", all.seconds));
  row("sequences/s", fmt::format("{:.0f}", sequences));
  row("GB/s", fmt::format("{:.3f}", rate / 1e9));
  row("memcpy, GB/s", fmt::format("{:.3f}", all.memcpy_rate / 1e9));
  row("ratio", fmt::format("{:.3f}", rate / all.memcpy_rate));
  row("slowest producer", fmt::format("{:.2f} of mean", all.slowest_share));
  row("clients", std::to_string(options.clients));
  row("batches taken", std::to_string(all.batches));
  row("sequences taken", std::to_string(all.taken));
  row("daemon's CPU seconds", fmt::format("{:.2f}", cpu_seconds));
}

Result<void> bench_producers(BenchOptions options) {
  const auto connect = connect_options(options.keys);
  if (!connect) return connect.error();
  if (auto found = find_stats(options); !found) return found.error();
  const auto before = read_stats(options);
  if (!before) return before.error();
  const auto all = run_producers(options, *connect);
  if (!all) return all.error();
  const auto after = read_stats(options);
  if (!after) return after.error();
  print_live(options, *all, after->cpu_seconds - before->cpu_seconds);
  return {};
}

}  // namespace

int run_bench(const BenchOptions& options) {
  try {
    if (options.producers != 0) {
      const auto done = bench_producers(options);
      return done ? kDone : fail(done.error());
    }
    const auto figures = measure(options);
    if (!figures) return fail(figures.error());
    options.json ? print_json(options, *figures) : print_table(options, *figures);
    return kDone;
  } catch (const client::Error& error) {
    // The library's codes are the daemon's (ErrorCode).
    return fail({static_cast<ErrorCode>(error.code()), error.what()});
  }
}

}  // namespace batchwright
