#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "daemon/stats/metrics/metric_rows.h"
#include "daemon/stats/stats.h"
#include "tests/stats/reference.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A feed with one subscriber that calls itself `client`.
FeedStatus speech(const FeedCounters& counters, std::shared_ptr<const StageTimes> stages,
                  std::string client) {
  FeedStatus feed;
  feed.name = "train";
  feed.state = FeedState::serving;
  feed.counters = counters;
  feed.stages = std::move(stages);
  feed.slots = {1, 2, 3, 4, 2};
  feed.pinned = "locked";
  feed.pages = "reserved";
  feed.plans = {{Epoch{3}, 10, 20, 320, 750, 1000, 0.25}};
  SubscriberStatus one;
  one.session = SessionId{42};
  one.subscription = SubscriptionNumber{7};
  one.client = std::move(client);
  one.rank = 1;
  one.window = 4;
  one.held = 1;
  one.waited_for_daemon_seconds = 1.5;
  one.waited_for_client_seconds = 2.25;
  feed.subscribers = {one};
  return feed;
}

/// Value by name and labels, as they stand.
std::map<std::string, double> samples_of(const std::string& page) {
  std::map<std::string, double> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.starts_with("#") || space == std::string::npos) continue;
    CHECK_MESSAGE(samples.emplace(line.substr(0, space), std::stod(line.substr(space))).second,
                  line);
  }
  return samples;
}

/// What promtool remarks, and nothing where it has none.
std::string remarks(const std::string& page) {
  const TemporaryFolder folder;
  std::ofstream(folder / "page") << page;
  const std::string command = "promtool check metrics < " + (folder / "page").string() + " > " +
                              (folder / "said").string() + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream said(folder / "said");
  const std::string text((std::istreambuf_iterator<char>(said)), std::istreambuf_iterator<char>());
  return status == 0 ? text : "status " + std::to_string(status) + ": " + text;
}

const char* const kLabels = R"({feed="train",client="trainer",rank="1",pid="0"})";

}  // namespace

TEST_CASE("stats: promtool has no remark on the metrics, with and without feeds") {
  CHECK(remarks(render_metrics({})) == "");
  FeedCounters counters;
  const auto stages = std::make_shared<StageTimes>();
  stages->add(Stage::assemble, std::chrono::milliseconds(3));
  EventLog log;
  StatsSource source;
  source.events = &log;
  source.feeds = {speech(counters, stages, "tr\"ai\\ner\nof \xFF"), FeedStatus{}};
  CHECK(remarks(render_metrics(source)) == "");
}

TEST_CASE("stats: every metric is there from the start, and none twice") {
  std::istringstream lines(render_metrics({}));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    CHECK_MESSAGE(names.insert(line.substr(7, line.rfind(' ') - 7)).second, line);
  }
  CHECK(names.size() == metric_rows().size());
}

TEST_CASE("stats: REFERENCE.md has the table of all metrics") {
  check_reference("metrics", metrics_table());
}

TEST_CASE("stats: figures of rows are the same on both pages") {
  StatsSource source;
  source.memory_ceiling_bytes = 7;
  source.http.refused = 8;
  EventLog log([now = source.started]() mutable { return now += std::chrono::milliseconds(250); });
  { const EventLog::Turn turn(log, "a page"); }
  source.events = &log;
  source.feeds = {speech({}, nullptr, "trainer")};
  source.feeds[0].plan_seconds = 0.5;
  source.readahead.disks = {{"8:1", 1, 2, 3.5, 0.25}};
  const auto page = samples_of(render_metrics(source));
  const boost::json::value stats = boost::json::parse(render_stats(source));
  const auto same = [&](const std::string& metric, const char* pointer, double value) {
    CHECK(page.at(metric) == value);
    CHECK(stats.at_pointer(pointer).to_number<double>() == value);
  };
  same("batchwright_memory_ceiling_bytes", "/memory_ceiling_bytes", 7);
  same("batchwright_http_refused_total", "/http/refused", 8);
  same("batchwright_loop_longest_turn_seconds", "/loop_longest_turn_seconds", 0.25);
  same(R"(batchwright_plan_seconds{feed="train"})", "/feeds/0/plan_seconds", 0.5);
  same(R"(batchwright_readahead_disk_latency_seconds{device="8:1"})",
       "/readahead/disks/0/latency_seconds", 0.25);
}

TEST_CASE("stats: metrics say what was counted") {
  FeedCounters counters;
  counters.add(wire::Mode::sharded, {8, 750, 1000, 4096});
  counters.add(FeedCounter::batches_shared, 3);
  const auto stages = std::make_shared<StageTimes>();
  stages->add(Stage::deliver, std::chrono::microseconds(3));
  stages->add(Stage::deliver, std::chrono::minutes(1));
  EventLog log;
  log.count(Event::client_refused);
  log.count(Event::key_refused);
  StatsSource source;
  source.events = &log;
  source.feeds = {speech(counters, stages, "trainer")};
  const auto page = samples_of(render_metrics(source));
  const std::string prefix = "batchwright_";
  const auto at = [&](const std::string& name) { return page.at(prefix + name); };
  CHECK(at(R"(batches_delivered_total{feed="train",mode="sharded"})") == 1);
  CHECK(at(R"(batches_delivered_total{feed="train",mode="queue"})") == 0);
  CHECK(at(R"(bytes_delivered_total{feed="train",mode="sharded"})") == 4096);
  CHECK(at(R"(batches_shared_total{feed="train"})") == 3);
  CHECK(at(R"(slots{feed="train",state="held"})") == 4);
  CHECK(at(R"(slots{feed="train",state="ahead"})") == 2);
  CHECK(at(R"(slots{feed="train",state="kept"})") == 1);
  CHECK(at(R"(pinned{feed="train",state="locked"})") == 1);
  CHECK(at(R"(pinned{feed="train",state="cuda"})") == 0);
  CHECK(at(R"(arena_pages{feed="train",kind="reserved"})") == 1);
  CHECK(at(R"(arena_pages{feed="train",kind="small"})") == 0);
  CHECK(at(R"(plan_padded_share{feed="train"})") == doctest::Approx(0.25));
  CHECK(at(R"(stage_seconds_bucket{feed="train",stage="deliver",le="2e-06"})") == 0);
  CHECK(at(R"(stage_seconds_bucket{feed="train",stage="deliver",le="4e-06"})") == 1);
  CHECK(at(R"(stage_seconds_bucket{feed="train",stage="deliver",le="+Inf"})") == 2);
  CHECK(at(R"(stage_seconds_count{feed="train",stage="deliver"})") == 2);
  CHECK(at(R"(events_total{event="key_refused"})") == 1);
  CHECK(at("clients_refused_total") == 2);
  CHECK(at(std::string("client_waited_seconds_total") + kLabels) == 1.5);
  CHECK(at(std::string("daemon_waited_seconds_total") + kLabels) == 2.25);
  CHECK(at(std::string("client_credit_batches") + kLabels) == 3);
}

TEST_CASE("stats: a live feed has its metrics, and a line for none of its producers") {
  StatsSource source;
  source.feeds.resize(2);
  source.feeds[0].name = "live";
  source.feeds[1].name = "stored";
  LiveStatus& live = source.feeds[0].live.emplace();
  live.counts.staleness.add(1);
  live.counts.staleness.add(7);
  live.counts.dropped = {1, 0, 2, 0};
  live.counts.waited.claims_staleness = 2.5;
  live.step_needs = 16;
  live.step_has = 4;
  live.kept_bytes = 64;
  const std::string text = render_metrics(source);
  CHECK(remarks(text) == "");
  live.producers.resize(50);
  live.producers[0].name = "actor";
  CHECK(render_metrics(source) == text);
  const auto page = samples_of(text);
  const auto at = [&](const std::string& name) { return page.at("batchwright_live_" + name); };
  CHECK(at(R"(staleness_bucket{feed="live",le="0"})") == 0);
  CHECK(at(R"(staleness_bucket{feed="live",le="1"})") == 1);
  CHECK(at(R"(staleness_bucket{feed="live",le="+Inf"})") == 2);
  CHECK(at(R"(staleness_sum{feed="live"})") == 8);
  CHECK(at(R"(dropped_total{feed="live",reason="incomplete"})") == 2);
  CHECK(at(R"(producer_waits_seconds_total{feed="live",wait="claim_staleness"})") == 2.5);
  CHECK(at(R"(step_share{feed="live"})") == 0.25);
  CHECK(at(R"(pool_bytes{feed="live",state="kept"})") == 64);
  CHECK(text.find(R"(batchwright_live_steps_total{feed="stored"})") == std::string::npos);
}

TEST_CASE("stats: subscriptions of one process and rank share their lines, and others do not") {
  FeedCounters counters;
  const auto stages = std::make_shared<StageTimes>();
  StatsSource source;
  source.feeds = {speech(counters, stages, "trainer")};
  std::vector<SubscriberStatus>& all = source.feeds[0].subscribers;
  all[0].epoch = Epoch{2};
  all[0].lag_batches = 3;
  all.push_back(all[0]);  // the same loop's next epoch, in another session
  all[1].session = SessionId{43};
  all[1].subscription = SubscriptionNumber{8};
  all[1].epoch = Epoch{1};
  all[1].lag_batches = 9;
  all.push_back(all[0]);
  all[2].pid = 77;
  const auto page = samples_of(render_metrics(source));
  const auto at = [&](const std::string& name, const std::string& pid) {
    return page.at("batchwright_" + name + R"({feed="train",client="trainer",rank="1",pid=")" +
                   pid + "\"}");
  };
  CHECK(at("client_waited_seconds_total", "0") == 3.0);
  CHECK(at("client_held_batches", "0") == 2);
  CHECK(at("client_lag_batches", "0") == 9);
  CHECK(at("client_position_epoch", "0") == 1);
  CHECK(at("client_waited_seconds_total", "77") == 1.5);
}

TEST_CASE("stats: a name cannot end its label or its line") {
  FeedCounters counters;
  const auto stages = std::make_shared<StageTimes>();
  StatsSource source;
  source.feeds = {speech(counters, stages, "a\"b\\c\nd\xFF")};
  const std::string page = render_metrics(source);
  CHECK(page.find("client=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\",rank") != std::string::npos);
}
