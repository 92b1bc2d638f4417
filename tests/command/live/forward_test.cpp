#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <map>
#include <memory>

#include "tests/command/live/live_daemon.h"

using namespace batchwright;
using namespace batchwright::test;

namespace json = boost::json;

namespace {

std::vector<std::string> forward(const DaemonProcess& from, const DaemonProcess& to,
                                 const std::vector<std::string>& more,
                                 const std::string& name = "shard") {
  std::vector<std::string> words = {program("batchwright"),
                                    "forward",
                                    "--from",
                                    from.endpoint(),
                                    "--feed",
                                    "train",
                                    "--to",
                                    "live",
                                    "--endpoint",
                                    to.endpoint(),
                                    "--name",
                                    name,
                                    "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Numbers of the rows that came, by producer.
using Numbers = std::map<std::string, std::vector<std::uint64_t>>;

/// Takes the next batch, and returns how many producers have rows in it.
std::size_t take_numbers(Trainer& trainer, Numbers& numbers) {
  REQUIRE(trainer.next() == BW_OK);
  const bw_batch_header& header = *bw_batch_get_header(trainer.batch());
  std::set<std::string> names;
  for (std::uint32_t row = 0; row < header.sequences; ++row) {
    const std::string name = bw_batch_producer(trainer.batch(), header.producers[row], nullptr);
    names.insert(name);
    numbers[name].push_back(header.numbers[row]);
  }
  return names.size();
}

/// A replica of the live feed that has `count` sequences of it.
std::multiset<Taken> take(Trainer& trainer, std::size_t count) {
  std::multiset<Taken> all;
  while (all.size() < count) {
    REQUIRE(trainer.next() == BW_OK);
    add_rows(trainer.batch(), all);
  }
  return all;
}

}  // namespace

TEST_CASE("command: forward carries whole epochs, and one that starts again goes on after them") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    DaemonProcess server(
        "layout = \"" + layout + "\"\n[feed.plan]\nsize = 3\nworld = 2\nremainder = \"spread\"\n",
        20);
    DaemonProcess worker("[feed.plan]\nsize = 4\n" + live_feed(1), 1);
    REQUIRE(server.start());
    REQUIRE(worker.start());
    Trainer trainer(worker.endpoint());
    trainer.subscribe([](bw_subscribe_options& options) { options.feed = "live"; });
    Process first(forward(server, worker, {"--epochs", "1"}));
    const auto epoch = take(trainer, 20);
    CHECK(epoch == all_sequences(server, "train"));
    REQUIRE(first.wait() == 0);
    Process second(forward(server, worker, {"--epochs", "2"}));
    CHECK(take(trainer, 20) == epoch);
    const bw_batch_header& last = *bw_batch_get_header(trainer.batch());
    REQUIRE(last.epochs != nullptr);
    CHECK(last.epochs[0] == 1);
    REQUIRE_MESSAGE(second.wait() == 0, second.err());
    const auto said = boost::json::parse(second.out()).as_object();
    CHECK(said.at("first").to_number<int>() == 20);
    CHECK(said.at("sequences").to_number<int>() == 20);
    const json::object over = answer(run(forward(server, worker, {"--epochs", "2"})));
    CHECK(over.at("sequences").to_number<int>() == 0);
  }
}

TEST_CASE("command: a forwarder that is killed within a step goes on at the next sequence") {
  DaemonProcess server("[feed.plan]\nsize = 20\nworld = 2\nremainder = \"spread\"\n", 60);
  DaemonProcess worker("[feed.plan]\nsize = 4\n" + live_feed(1, kSameLabel, 3), 1);
  REQUIRE(server.start());
  REQUIRE(worker.start());
  Trainer trainer(worker.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) {
    options.feed = "live";
    options.window = 1;
  });
  std::multiset<Taken> all;
  {
    Process killed(forward(server, worker, {"--epochs", "1"}));
    all = take(trainer, 25);  // in the middle of a batch: the pool has room for three
    killed.signal(SIGKILL);
    REQUIRE(killed.wait() == 128 + SIGKILL);
  }
  Process second(forward(server, worker, {"--epochs", "1"}));
  all.merge(take(trainer, 60 - all.size()));
  REQUIRE_MESSAGE(second.wait() == 0, second.err());
  CHECK(all == all_sequences(server, "train"));
  CHECK(boost::json::parse(second.out()).at("first").to_number<int>() >= 25);
}

TEST_CASE("command: forward goes on over restarts of either daemon") {
  DaemonProcess server("[feed.plan]\nsize = 3\n", 30);
  DaemonProcess worker("[feed.plan]\nsize = 4\n" + live_feed(1, kSameLabel, 2), 1);
  REQUIRE(server.start());
  REQUIRE(worker.start());
  Trainer trainer(worker.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.feed = "live"; });
  Process forwarder(forward(server, worker, {"--epochs", "2"}));
  std::multiset<Taken> all = take(trainer, 10);
  server.process().signal(SIGKILL);
  REQUIRE(server.process().wait());
  REQUIRE(server.start());
  all.merge(take(trainer, 20));
  CHECK(all == all_sequences(server, "train"));

  worker.process().signal(SIGKILL);
  REQUIRE(worker.process().wait());
  REQUIRE(worker.start());
  Trainer next(worker.endpoint());
  next.subscribe([](bw_subscribe_options& options) { options.feed = "live"; });
  // What was in the pool is gone with it; the rest comes.
  CHECK_FALSE(take(next, 15).empty());
  forwarder.signal(SIGTERM);
  REQUIRE(forwarder.wait());
  CHECK(forwarder.err().find("kept no numbers") != std::string::npos);
}

TEST_CASE("command: one server of ten that is stopped stops no other, and catches up") {
  DaemonProcess nine("[feed.plan]\nsize = 2\n", 60);
  DaemonProcess tenth("[feed.plan]\nsize = 2\n", 60);
  DaemonProcess worker("[feed.plan]\nsize = 4\n" + live_feed(20, kSameLabel, 40), 1);
  for (DaemonProcess* daemon : {&nine, &tenth, &worker}) REQUIRE(daemon->start());
  Trainer trainer(worker.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.feed = "live"; });
  std::vector<std::unique_ptr<Process>> forwarders;
  for (int i = 0; i < 10; ++i) {
    forwarders.push_back(std::make_unique<Process>(
        forward(i < 9 ? nine : tenth, worker, {}, fmt::format("server-{}", i))));
  }
  Numbers before;
  while (before.size() < 10) take_numbers(trainer, before);

  tenth.process().signal(SIGSTOP);
  for (int step = 0; step < 20; ++step) take_numbers(trainer, before);  // what was on its way
  Numbers meanwhile;
  for (int step = 0; step < 45; ++step) CHECK(take_numbers(trainer, meanwhile) > 1);
  CHECK(meanwhile.size() == 9);
  for (const auto& each : meanwhile) {
    CAPTURE(each.first);
    CHECK(each.second.size() > 50);  // of 900, to which each has 100
    CHECK(each.second.size() < 200);
  }

  tenth.process().signal(SIGCONT);
  Numbers after;
  while (after["server-9"].size() < 40) take_numbers(trainer, after);
  std::vector<std::uint64_t> all = before["server-9"];
  all.insert(all.end(), after["server-9"].begin(), after["server-9"].end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  for (const auto& forwarder : forwarders) forwarder->signal(SIGTERM);
  for (const auto& forwarder : forwarders) CHECK(forwarder->wait() == 0);
}

TEST_CASE("command: forward says which field is lacking, and takes no live feed for a source") {
  DaemonProcess server("[feed.plan]\nsize = 3\n" +
                           live_feed(1, "score = { dtype = \"float32\", kind = \"scalar\" }"),
                       3);
  REQUIRE(server.start());
  const Finished other = run(forward(server, server, {}));
  CHECK(other.code == 2);
  CHECK(other.err.find("feed \"live\" takes \"score\" [] float32, scalar; feed \"train\" has "
                       "\"features\" [T, 4] float32, primary; \"label\" [] int32, scalar") !=
        std::string::npos);
  const Finished live =
      command(server, {"forward", "--from", server.endpoint(), "--feed", "live", "--to", "live"});
  CHECK(live.code == 2);
  CHECK(live.err.find("feed \"live\" is live") != std::string::npos);
}
