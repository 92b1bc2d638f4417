#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <csignal>

#include "tests/command/live/live_daemon.h"

using namespace batchwright;
using namespace batchwright::test;

namespace json = boost::json;

namespace {

std::vector<std::string> forward(const DaemonProcess& from, const DaemonProcess& to,
                                 const std::vector<std::string>& more) {
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
                                    "shard",
                                    "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
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

TEST_CASE("command: forward carries whole epochs, and one that starts again goes on behind them") {
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
