// The C ABI and the C++ face of live feeds, over real sockets.

#include "client/library/batchwright/live.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/client/fake/fake_live.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

const std::vector<std::int32_t> kTokens = {4, 5, 6};
constexpr std::string_view kText = "hello";
constexpr float kReward = 0.5F;

client::Sequence sequence(std::string key = "") {
  client::Sequence made(std::move(key));
  made.add(std::span(kTokens), kTokens.size()).add(std::span(kText), kText.size()).add(kReward);
  return made;
}

}  // namespace

TEST_CASE("client: a sequence comes to the daemon as it was, by area and by frame") {
  FakeLive daemon;
  const client::Connection connection(daemon.endpoint());
  std::uint64_t area_bytes = 0;
  SUBCASE("by area") { area_bytes = 1U << 20; }
  SUBCASE("by frame") {}
  client::Producer producer(connection,
                            {.feed = "rollouts", .name = "actor", .area_bytes = area_bytes});
  CHECK(producer.info().area_bytes == area_bytes);
  CHECK(producer.push(sequence(), {.version = 3, .group = 8, .group_size = 2, .weight = 0.25F},
                      10s) == 0);
  CHECK(producer.push(sequence("named"), {}, 10s) == 1);
  const auto taken = daemon.taken();
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].framed == (area_bytes == 0));
  CHECK(taken[0].key == "actor/0");
  CHECK(taken[0].version == 3);
  CHECK(taken[0].group == 8);
  CHECK(taken[0].group_size == 2);
  CHECK(taken[0].weight == 0.25F);
  CHECK(taken[0].tokens == kTokens);
  CHECK(taken[0].text == kText);
  CHECK(taken[0].reward == kReward);
  CHECK(taken[1].key == "named");
  CHECK(taken[1].group == BW_NO_GROUP);
}

TEST_CASE("client: many sequences are pushed in one call, and rooms in place") {
  FakeLive daemon(1U << 16);
  const client::Connection connection(daemon.endpoint());
  client::Producer producer(connection, {.feed = "rollouts"});
  const std::vector<client::Sequence> many(1000, sequence());
  const std::vector<client::Origin> origins(many.size());
  CHECK(producer.push_many(many, origins, 20s) == 1000);  // more than the area has room for
  const std::array<std::uint32_t, 3> lengths = {2, 0, 1};
  client::Room room = producer.reserve(lengths, 10s);
  const auto tokens = room.field<std::int32_t>(0);
  REQUIRE(tokens.size() == 2);
  tokens[0] = 7;
  tokens[1] = 8;
  room.field<float>(2)[0] = 9;
  CHECK(room.field<char>(1).empty());
  CHECK(room.commit({.version = 1}, 10s) == 1000);
  const auto taken = daemon.taken();
  REQUIRE(taken.size() == 1001);
  CHECK(taken[999].number == 999);
  CHECK(taken[1000].tokens == std::vector<std::int32_t>{7, 8});
  CHECK(taken[1000].reward == 9);
  { const client::Room given_up = producer.reserve(lengths, 10s); }
  CHECK(producer.outcomes(10s).waiting == 1001);
  CHECK(producer.outcomes_of(1000, 8, 10s) == std::vector<bw_outcome>{BW_OUTCOME_WAITING});
  CHECK(producer.info().next == 1001);
}

TEST_CASE("client: a producer goes on with a daemon that comes back, as another one does") {
  FakeLive daemon;
  const client::Connection connection(daemon.endpoint());
  client::Producer producer(connection, {.feed = "rollouts", .name = "actor"});
  CHECK(producer.push(sequence(), {}, 10s) == 0);
  daemon.die();
  std::thread later([&daemon] { daemon.rise(); });
  CHECK(producer.push(sequence(), {}, 20s) == 1);
  later.join();
  CHECK(producer.info().reconnects == 1);
  CHECK(daemon.taken().size() == 2);
}

TEST_CASE("client: versions and the end of a live feed") {
  FakeLive daemon;
  const client::Connection connection(daemon.endpoint());
  const client::LiveFeed feed(connection, "rollouts");
  client::Producer producer(connection, {.feed = "rollouts"});
  feed.advance(4);
  CHECK(feed.wait_version(3, 10s) == 4);
  CHECK(producer.claim(2, 10s) == 4);
  CHECK_THROWS_AS(feed.wait_version(4, 10ms), client::Error);
  feed.end();
  while (producer.claim(1, 10s)) continue;
  CHECK_FALSE(producer.claim(1, 10s));
}

TEST_CASE("client: calls on live feeds that cannot be") {
  FakeLive daemon;
  const client::Connection connection(daemon.endpoint());
  bw_connection* const raw = connection.raw();
  bw_producer* producer = nullptr;
  bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
  CHECK(bw_produce(raw, &options, &producer) == BW_INVALID_ARGUMENT);
  options.feed = "train";
  CHECK(bw_produce(raw, &options, &producer) == BW_INVALID_ARGUMENT);
  CHECK(std::string_view(bw_error_message()).find("feed \"train\" has a dataset") == 0);
  options.feed = "rollouts";
  const std::string long_name(65, 'n');
  options.name = long_name.c_str();
  CHECK(bw_produce(raw, &options, &producer) == BW_INVALID_ARGUMENT);
  CHECK(producer == nullptr);
  CHECK(bw_advance(raw, "train", 1, 0, 0) == BW_INVALID_ARGUMENT);
  CHECK(bw_advance(raw, "rollouts", BW_LAST_VERSION + 1, 0, 0) == BW_INVALID_ARGUMENT);
  CHECK(bw_advance(raw, "rollouts", 1, 0, 1) == BW_INVALID_ARGUMENT);
  CHECK(bw_end_feed(raw, "none") == BW_NOT_FOUND);
  CHECK(bw_claim(nullptr, 1, 0, nullptr) == BW_INVALID_ARGUMENT);
  CHECK(bw_producer_close(nullptr, 0) == BW_OK);
  CHECK(bw_room_drop(nullptr) == BW_OK);
  options.name = "actor";
  REQUIRE(bw_produce(raw, &options, &producer) == BW_OK);
  std::uint64_t version = 0;
  CHECK(bw_claim(producer, 1, -1, &version) == BW_INVALID_ARGUMENT);
  std::size_t count = BW_MAX_OUTCOMES + 1;
  bw_outcome outcome = 0;
  CHECK(bw_outcomes_of(producer, 0, 1000, &outcome, &count) == BW_INVALID_ARGUMENT);
  REQUIRE(bw_producer_close(producer, 1000) == BW_OK);
}

TEST_CASE("client: a forked child has no part in its parent's producer") {
  FakeLive daemon;
  const client::Connection connection(daemon.endpoint());
  client::Producer producer(connection, {.feed = "rollouts"});
  const pid_t child = ::fork();
  if (child == 0) {
    bool refused = false;
    try {
      producer.push(sequence(), {}, 10s);
    } catch (const client::Error& error) {
      refused = error.code() == BW_FORKED;
    }
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(producer.push(sequence(), {}, 10s) == 0);
}
