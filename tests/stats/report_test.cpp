#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <limits>
#include <set>
#include <string>

#include "daemon/stats/stats.h"

using namespace batchwright;
namespace json = boost::json;

namespace {

FeedStatus speech(const FeedCounters& counters) {
  FeedStatus feed;
  feed.name = "train";
  feed.dataset = {"/data/a", "/data/b"};
  feed.dataset_lock = "slot";
  feed.dataset_stale = true;
  feed.blocked_by = "journal /j";
  feed.blocked_seconds = 7.5;
  feed.state = FeedState::serving;
  feed.counters = counters;
  feed.sequences = 2780;
  feed.slots = {1, 2, 3, 4, 2};
  feed.slot_bytes = 4096;
  feed.arena_bytes = 40960;
  feed.making_bytes = 8192;
  feed.pinned = "locked";
  feed.pages = "transparent";
  feed.plans = {{Epoch{3}, 10, 20, 320, 750, 1000, 0.25}};
  feed.subscribers = {{SessionId{0xFFFFFFFFFFFFFFFF},
                       {7},
                       "trainer",
                       42,
                       wire::Mode::sharded,
                       1,
                       2,
                       Epoch{3},
                       Step{9},
                       4,
                       2,
                       std::chrono::milliseconds(12'500)}};
  return feed;
}

json::value render(const StatsSource& source) { return json::parse(render_stats(source)); }

}  // namespace

TEST_CASE("stats: the report of a daemon without feeds") {
  StatsSource source;
  source.version = "0.1.0";
  source.uptime = std::chrono::milliseconds(1500);
  source.process = {7, 0.25, 30, 10, 12, 8};
  source.memory_ceiling_bytes = std::uint64_t{1} << 63;
  source.copy = "avx2";
  json::value page = render(source);
  CHECK(page.as_object().erase("events") == 1);
  CHECK(page == json::parse(R"({"version":"0.1.0","host":"","uid":0,"uptime_seconds":1.5,"pid":7,
    "cpu_seconds":0.25,"resident_bytes":30,"anonymous_bytes":10,"mapped_file_bytes":12,
    "shared_memory_bytes":8,"memory_ceiling_bytes":9223372036854775808,"arena_bytes":0,
    "sessions":0,"ready":true,"not_ready":[],
    "build":{"version":"0.1.0","commit":"","compiler":"","cuda":false},
    "copy":{"chosen":{"short":"avx2","middle":"avx2","long":"avx2"}},
    "open_descriptors":0,"page_faults":{"minor":0,"major":0},"clients_refused":0,"log_lines_dropped":0,
    "loop_longest_turn_seconds":0.0,
    "reload":{"applied":0,"refused":0,"last_refusal":null,"last_seconds_ago":null},
    "http":{"connections":0,"requests":0,"refused":0},"disks":[],"feeds":[],"latest_events":[],
    "readahead":{"ahead_bytes":0,"kept_bytes":0,"pressure_share":0.0,"disks":[]}})"));
}

TEST_CASE("stats: the report of readahead") {
  StatsSource source;
  source.readahead = {100, 200, 0.25, {{"254:0", 10, 2048, 1e9, 0.002}}};
  CHECK(render(source).at("readahead") ==
        json::parse(R"({"ahead_bytes":100,"kept_bytes":200,"pressure_share":0.25,
    "disks":[{"device":"254:0","under_way_bytes":10,"window_bytes":2048,
    "bytes_per_second":1e9,"latency_seconds":0.002}]})"));
}

TEST_CASE("stats: the report of a feed") {
  FeedCounters counters;
  for (int i = 0; i < 5; ++i) counters.add(wire::Mode::replica, {8, 750, 1000, 4096});
  StatsSource source;
  source.feeds = {speech(counters)};
  const json::value page = render(source);
  const json::value& feed = page.at_pointer("/feeds/0");
  CHECK(feed.at("dataset") == json::parse(R"(["/data/a","/data/b"])"));
  CHECK(feed.at("state") == "serving");
  CHECK(feed.at("dataset_lock") == "slot");
  CHECK(feed.at("dataset_stale") == true);
  CHECK(feed.at("blocked_by") == "journal /j");
  CHECK(feed.at("blocked_seconds") == 7.5);
  CHECK(feed.at("reason") == "");
  CHECK(feed.at("slots") ==
        json::parse(R"({"free":1,"filling":2,"ready":3,"ahead":2,"kept":1,"held":4})"));
  CHECK(feed.at("plans") == json::parse(R"([{"epoch":3,"steps":10,"batches":20,"sequences":320,
    "frames":750,"padded_frames":1000,"padded_share":0.25,"zero_padding_rate":0.25}])"));
  CHECK(feed.at("subscribers") == json::parse(R"([{"session":"ffffffffffffffff",
    "subscription":7,"client":"trainer","pid":42,"mode":"sharded","rank":1,"ranks":2,"epoch":3,
    "step":9,"window_batches":4,"held_batches":2,"held_seconds":12.5,"credit_batches":2,"lag_batches":0,
    "delivered_batches":0,"delivered_bytes":0,"waited_for_daemon_seconds":0.0,
    "waited_for_client_seconds":0.0,"waiting":"none","position_share":0.0}])"));
}

TEST_CASE("stats: the report of a live feed has its pool, its drops and its producers") {
  StatsSource source;
  source.feeds.resize(2);
  LiveStatus& live = source.feeds[0].live.emplace();
  live.counts.staleness.add(0);
  live.counts.staleness.add(5);
  live.counts.staleness.add(1000);
  live.counts.accepted = 4;
  live.counts.accepted_frames = 40;
  live.counts.dropped = {1, 0, 2, 0};
  live.counts.dropped_frames = 60;
  live.counts.waited = {100.0, 1.5, 0.0, 2.5, 0.0};
  live.waiting = 3;
  live.pool_sequences = 16;
  live.producers.push_back({"actor\xFF", true, SessionId{0xAB}, "gen.py", 42, 4, 160});
  live.producers[0].waits_for = "room";
  const json::value page = render(source);
  CHECK(page.at_pointer("/feeds/1").as_object().contains("live") == false);
  const json::value& shown = page.at_pointer("/feeds/0/live");
  CHECK(shown.at("dropped") == json::parse(R"({"stale":1,"late":0,"incomplete":2,"abandoned":0})"));
  CHECK(shown.at("mean_accepted_length") == 10.0);
  CHECK(shown.at("mean_dropped_length") == 20.0);
  CHECK(shown.at("version_seconds_ago").is_null());
  CHECK(shown.at_pointer("/pool/waiting") == 3);
  CHECK(shown.at_pointer("/pool/limit") == 16);
  CHECK(shown.at_pointer("/waited/claims_staleness_seconds") == 2.5);
  CHECK(shown.at_pointer("/waited/connected_seconds") == 100.0);
  CHECK(shown.at_pointer("/staleness/rows") == 3);
  CHECK(shown.at_pointer("/staleness/ranges/5") == json::parse(R"({"up_to":6,"rows":1})"));
  CHECK(shown.at_pointer("/staleness/ranges/10") == json::parse(R"({"up_to":null,"rows":1})"));
  CHECK(shown.at("producers") == json::parse(R"([{"name":"actor\ufffd","connected":true,
    "session":"ab","client":"gen.py","pid":42,"accepted":4,"accepted_bytes":160,"waiting":0,
    "dropped_stale":0,"abandoned":0,"claimed":0,"held_bytes":0,"area_bytes":0,
    "pushed_seconds_ago":null,"waits_for":"room"}])"));
}

TEST_CASE("stats: the report has every counter, also of a feed that has none yet") {
  FeedCounters counters;
  for (int i = 0; i < 5; ++i) counters.add(wire::Mode::replica, {8, 750, 1000, 4096});
  StatsSource source;
  source.feeds = {speech(counters), FeedStatus{}};
  const json::value page = render(source);
  const auto& full = page.at_pointer("/feeds/0/counters").as_object();
  const auto& empty = page.at_pointer("/feeds/1/counters").as_object();
  CHECK(full.size() == static_cast<std::size_t>(FeedCounter::count));
  CHECK(empty.size() == full.size());
  CHECK(full.at("batches_delivered") == 5);
  CHECK(empty.at("batches_delivered") == 0);
}

TEST_CASE("stats: a name that is no UTF-8 leaves the report valid") {
  StatsSource source;
  source.feeds.emplace_back();
  const auto shown = [&](const std::string& name) {
    source.feeds[0].subscribers.resize(1);
    source.feeds[0].subscribers[0].client = name;
    const json::value page = render(source);
    return std::string(page.at_pointer("/feeds/0/subscribers/0/client").as_string());
  };
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(shown("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(shown("a\xFF"
              "b") == "a" + mark + "b");
  CHECK(shown("\xC3") == mark);                                   // cut off
  CHECK(shown("\xC0\xAF") == mark + mark);                        // overlong
  CHECK(shown("\xED\xA0\x80") == mark + mark + mark);             // a surrogate
  CHECK(shown("\xF4\x90\x80\x80") == mark + mark + mark + mark);  // above U+10FFFF
  CHECK(shown("quote\" back\\slash\nline") == "quote\" back\\slash\nline");
}

TEST_CASE("stats: the history of a feed has the uptime and the rate of each sample that is kept") {
  StatsSource source;
  source.started += std::chrono::seconds(100);
  const std::deque<PastRate> past{{source.started + std::chrono::seconds(3), 0.0},
                                  {source.started + std::chrono::seconds(4), 2.5}};
  source.feeds.resize(2);
  source.feeds[0].name = "train";
  source.feeds[0].past = &past;
  source.feeds[1].name = "absent";
  CHECK(json::parse(render_history(source)) ==
        json::parse(R"({"bytes_per_second":{"train":[[3.0,0.0],[4.0,2.5]],"absent":[]}})"));
}

TEST_CASE("stats: a client that holds nothing has held it for no time") {
  StatsSource source;
  source.feeds.emplace_back().subscribers.emplace_back();
  const json::value page = render(source);
  CHECK(page.at_pointer("/feeds/0/subscribers/0/held_batches") == 0);
  CHECK(page.at_pointer("/feeds/0/subscribers/0/held_seconds").is_null());
}

TEST_CASE("stats: a figure that is no number is null") {
  StatsSource source;
  source.feeds.emplace_back().plans.emplace_back().zero_padding_rate =
      std::numeric_limits<double>::quiet_NaN();
  const json::value page = render(source);
  CHECK(page.at_pointer("/feeds/0/plans/0/zero_padding_rate").is_null());
  CHECK(page.at_pointer("/feeds/0/plans/0/padded_share").is_null());
}
