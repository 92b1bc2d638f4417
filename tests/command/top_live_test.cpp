#include <doctest/doctest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <string>

#include "client/command/top/hosts.h"
#include "tests/command/top_pages.h"

using namespace batchwright;
using namespace batchwright::testing;
namespace json = boost::json;

namespace {

json::object producer(const std::string& name, bool connected, const std::string& waits_for) {
  return {{"name", name},
          {"connected", connected},
          {"session", "ab"},
          {"client", "gen.py"},
          {"pid", 42},
          {"accepted", 1200},
          {"accepted_bytes", 0},
          {"waiting", 3},
          {"dropped_stale", 1},
          {"abandoned", 0},
          {"claimed", 16},
          {"held_bytes", 1024},
          {"area_bytes", 4096},
          {"pushed_seconds_ago", 612.0},
          {"waits_for", waits_for}};
}

/// A page with one feed, which is live and stands still.
json::value live_page(json::array producers) {
  json::value page =
      top_page(top_feed("rollouts", {"staleness-bound", 0, 0, top_client("trainer", 100, 0.5)}));
  json::value live = json::parse(R"({"version":7,"version_seconds_ago":120.0,"steps":1200,
    "steps_kept":2,"step_has":9,"step_needs":16,"step_unit":"sequences",
    "pool":{"claimed":5,"waiting":9,"waiting_bytes":1048576,"kept":0,"kept_bytes":0,"in_steps":32,
      "limit":64,"limit_bytes":4194304},
    "groups":2,"groups_missing":5,"oldest_group_seconds":30.0,
    "claims_waiting":3,"claims_wait_for":"staleness","longest_claim_seconds":118.0,
    "pushes_waiting":0,"accepted":4000,"pushed_seconds_ago":3.5,
    "dropped":{"stale":12,"late":0,"incomplete":4,"abandoned":0},
    "mean_accepted_length":100.0,"mean_dropped_length":250.0,"rows_zeroed":0,
    "staleness":{"ranges":[{"up_to":0,"rows":100},{"up_to":1,"rows":0},{"up_to":3,"rows":7},
      {"up_to":null,"rows":1}]},
    "producers_connected":2,"producers_known":9})");
  live.as_object()["producers"] = std::move(producers);
  page.at("feeds").at(0).as_object()["live"] = std::move(live);
  return page;
}

}  // namespace

TEST_CASE("command: top shows the pool, versions, drops and producers of a live feed") {
  TopModel model =
      model_of(live_page({producer("actor-1", true, "claim"), producer("", false, "")}));
  CHECK(has(texts(model, kWide), "staleness-bound"));
  press(model, TopKey::open);
  const auto lines = texts(model, {140, 60});
  CHECK(has(lines, "rollouts  staleness-bound  producers wait for a newer version"));
  CHECK(has(lines, "a live feed: its sequences are pushed by producers"));
  CHECK_FALSE(has(lines, "padding planned"));
  CHECK(has(lines, "step 1,200"));
  CHECK_FALSE(has(lines, "epoch 3"));
  CHECK(has(lines, "version 7, announced 2 min 0 s ago  steps cut 1,200  steps kept 2"));
  CHECK(has(lines, "next step 9 of 16 sequences"));
  CHECK(has(lines, "claims that wait 3, for a newer version (1 min 58 s)  pushes that wait 0"));
  CHECK(has(lines, "incomplete groups 2, lack 5 (30.0 s)"));
  CHECK(has(lines, "dropped 12 too stale, 4 of an incomplete group"));
  CHECK(has(lines, "mean length dropped 250 against 100"));
  CHECK(has(lines, "9 waiting for a step"));
  CHECK(has(lines, "limit 64  1.00 MiB of 4.00 MiB"));
  CHECK(has(lines, "  0: 100  2 to 3: 7  4 and up: 1"));
  CHECK(
      has(lines, "Producers: 2 connected, 9 known by name; these 2 have been silent for longest"));
  const std::string stuck = line_with(lines, "actor-1");
  CHECK(stuck.starts_with("  actor-1, gen.py (process 42)"));
  CHECK(stuck.find("1,200") != std::string::npos);
  CAPTURE(stuck);
  CHECK(stuck.find("10 min 12 s claim") != std::string::npos);
  CHECK(stuck.find("1.00 KiB of 4.00 KiB") != std::string::npos);
  CHECK(line_with(lines, "unnamed, gen.py").starts_with("  unnamed, gen.py (process 42), gone"));
}

TEST_CASE("command: top shows the pool of the host whose live feed is worst off") {
  json::value well = live_page({producer("there", true, "")});
  well.at("feeds").at(0).at("verdict").as_object()["text"] = "trainer-bound";
  json::value stuck = live_page({producer("here", true, "claim")});
  well.as_object()["host"] = "n1";
  stuck.as_object()["host"] = "n2";
  TopModel model = model_of(merged({{"a", well, {}}, {"b", stuck, {}}}));
  press(model, TopKey::open);
  const auto lines = texts(model, {140, 60});
  CHECK(has(lines, "Pool and steps of n2"));
  CHECK(has(lines, "  here, gen.py"));
  CHECK_FALSE(has(lines, "  there, gen.py"));
}

TEST_CASE("command: top shows nothing of producers where a feed has a dataset") {
  TopModel model = model_of(top_page(top_feed("train")));
  press(model, TopKey::open);
  CHECK_FALSE(has(texts(model, kWide), "Producers"));
  CHECK(has(texts(model, kWide), "dataset /data/a, /data/b"));
}
