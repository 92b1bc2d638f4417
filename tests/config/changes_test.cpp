#include <doctest/doctest.h>

#include "daemon/config/config.h"

using namespace batchwright;

namespace {

Config with_feeds(const std::vector<std::string>& names) {
  Config config;
  for (const std::string& name : names) config.feeds.emplace_back().served.name = name;
  return config;
}

}  // namespace

TEST_CASE("config: an equal configuration asks for nothing") {
  const Config config = with_feeds({"a", "b"});
  const ConfigChanges changes = compare_configs(config, config);
  CHECK(changes.need_restart.empty());
  CHECK(changes.added.empty());
  CHECK(changes.removed.empty());
  CHECK(changes.changed.empty());
  CHECK(changes.unchanged == 2);
}

TEST_CASE("config: feeds are told apart by name, whatever their order") {
  const ConfigChanges changes = compare_configs(with_feeds({"a", "b"}), with_feeds({"c", "b"}));
  CHECK(changes.added == std::vector<std::string>{"c"});
  CHECK(changes.removed == std::vector<std::string>{"a"});
  CHECK(changes.unchanged == 1);
  CHECK(compare_configs(with_feeds({"a", "b"}), with_feeds({"b", "a"})).unchanged == 2);
}

TEST_CASE("config: what changes in place is told from what takes a new feed") {
  const Config running = with_feeds({"a"});
  Config wanted = running;
  wanted.feeds[0].served.max_window = 3;
  wanted.feeds[0].served.on_corrupt = OnCorrupt::skip;
  const auto in_place = compare_configs(running, wanted).changed;
  REQUIRE(in_place.size() == 1);
  CHECK(in_place[0].in_place);
  CHECK(in_place[0].keys == "on_corrupt, max_window");
  wanted.feeds[0].served.slots = 3;
  wanted.feeds[0].served.plan.seed = 1;
  wanted.feeds[0].served.plan.mix_weights = {1, 2};
  const auto anew = compare_configs(running, wanted).changed;
  REQUIRE(anew.size() == 1);
  CHECK_FALSE(anew[0].in_place);
  CHECK(anew[0].keys == "slots, plan.mix_weights, plan.seed, on_corrupt, max_window");
}

TEST_CASE("config: another order file at the same path has the feed made again") {
  Config running = with_feeds({"a"});
  running.feeds[0].served.plan.order = Order::file;
  running.feeds[0].served.plan.order_file = "/o";
  running.feeds[0].order_file_state = "1 2 3 4.5";
  Config wanted = running;
  CHECK(compare_configs(running, wanted).unchanged == 1);
  wanted.feeds[0].order_file_state = "1 2 3 4.6";
  const auto changed = compare_configs(running, wanted).changed;
  REQUIRE(changed.size() == 1);
  CHECK_FALSE(changed[0].in_place);
  CHECK(changed[0].keys == "what plan.order_file has");
  wanted.feeds[0].served.plan.order_file = "/p";
  CHECK(compare_configs(running, wanted).changed[0].keys == "plan.order_file");
}

TEST_CASE("config: keys of the daemon change at once, or are named as those that cannot") {
  const Config running = with_feeds({"a"});
  Config wanted = running;
  wanted.daemon.log_level = Severity::debug;
  wanted.daemon.queue_grace = std::chrono::seconds(1);
  wanted.daemon.allow_uids = {"root"};
  wanted.daemon.allow_gids = {"root"};
  CHECK(compare_configs(running, wanted).need_restart.empty());
  wanted.daemon.memory_bytes *= 2;
  wanted.daemon.max_clients = 7;
  wanted.daemon.max_producers = 7;
  CHECK(compare_configs(running, wanted).need_restart ==
        std::vector<std::string>{"daemon.memory", "daemon.max_clients", "daemon.max_producers"});
}
