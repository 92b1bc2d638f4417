#include <fmt/core.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <chrono>
#include <thread>

#include "client/command/commands.h"
#include "client/command/data/configured_feed.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"
#include "client/command/progress.h"

namespace batchwright {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

/// The feed that the call names, or one of its dataset and front end.
Result<ConfiguredFeed> open_named(const CmvnCommandOptions& options) {
  // Random steps would be part of the sums, and the statistics that the feed is to have are not
  // there yet.
  if (options.dataset.empty()) {
    return open_configured_feed(options.config, options.feed, &without_draws);
  }
  if (auto checked = check_recipe(options.front_end); !checked) return checked.error();
  FeedConfig feed;
  feed.dataset = {options.dataset};
  feed.served.features = options.front_end;
  return open_feed(std::move(feed), &without_draws);
}

Result<CmvnStatistics> gather(const CmvnCommandOptions& options) {
  const auto feed = open_named(options);
  if (!feed) return feed.error();
  const auto start = Clock::now();
  ProgressLine progress(stderr, start);
  const auto show = [&progress](std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (!progress.due(now, done, total)) return;
    progress.print(now, done, total, fmt::format("{} of {} sequences", done, total));
  };
  const unsigned threads =
      options.threads == 0 ? std::max(std::thread::hardware_concurrency(), 1U) : options.threads;
  return gather_statistics(*feed->recipe, *feed->snapshot, options.by, threads, show);
}

}  // namespace

int run_cmvn(const CmvnCommandOptions& options) {
  const auto start = Clock::now();
  const auto statistics = gather(options);
  if (!statistics) return fail(statistics.error());
  if (auto written = write_statistics(options.into, *statistics); !written) {
    return fail(written.error());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (options.json) {
    print_json_line(json::object{{"into", options.into.string()},
                                 {"frames", statistics->all.frames},
                                 {"dimensions", statistics->all.sums.size()},
                                 {"speakers", statistics->speakers.size()},
                                 {"seconds", seconds}});
  } else {
    fmt::print("{} frames of {} values, {} speakers, in {:.2f} s: {}\n", statistics->all.frames,
               statistics->all.sums.size(), statistics->speakers.size(), seconds,
               options.into.string());
  }
  return kDone;
}

}  // namespace batchwright
