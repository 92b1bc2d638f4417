// A live feed with a spool goes on after the death of its daemon: nothing that was accepted is
// lost, or delivered under another step. A desk that ends writes nothing more, as one that is
// killed.

#include "daemon/delivery/feed/live/spool/spool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/delivery/live/feed_with_spool.h"
#include "tests/support/known_leaks.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

TEST_CASE("delivery: spool: what waits is delivered after a restart, and its producer goes on") {
  FeedWithSpool feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered_between(0, 3));
  REQUIRE(feed->answer<wire::Accepted>(kActor)->next == 3);
  feed.restart();
  const auto produced = feed->produce(kActor, "actor");
  REQUIRE(produced);
  CHECK(produced->incarnation == 1);
  CHECK(produced->next == 3);
  feed->push(kActor, offered_between(0, 4));  // three of them are repeats
  feed->take(kTrainer, 0);
  CHECK(feed->rows(0) == rows_of("actor", 0, 4));
  CHECK(feed->has_its_values(0));
  CHECK(feed->outcomes(kActor)->duplicates == 3);
}

TEST_CASE("delivery: spool: a step that was cut stays as it was, bytes and all") {
  FeedWithSpool feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->take(kTrainer, 0);
  feed->push(kActor, offered_between(0, 4));
  feed->take(kTrainer, 1);
  feed->push(kActor, offered_between(4, 10));
  REQUIRE(feed->steps() == 2);
  const NamedRows second = feed->rows(1);
  CHECK(feed->status().counts.staleness.rows() == 8);
  feed.restart();
  CHECK(feed->status().counts.staleness.rows() == 0);  // they were counted when they were cut
  CHECK(feed->first_step() == 1);  // the trainer had asked for it, and so released the first
  CHECK(feed->steps() == 2);
  CHECK(feed->rows(1) == second);
  CHECK(feed->has_its_values(1));
  REQUIRE(feed->produce(kActor, "actor"));
  auto totals = feed->outcomes(kActor)->totals;
  CHECK(totals[kDoneTotal] == 4);
  CHECK(totals[kDeliveredTotal] == 4);
  CHECK(totals[kWaitingTotal] == 2);
  feed->take(kTrainer, 2);
  feed->push(kActor, offered_between(10, 12));
  CHECK(feed->rows(2) == rows_of("actor", 8, 12));
  CHECK(feed->status().counts.staleness.rows() == 4);
  // The steps of before are kept for a while, and released with the trainers that come back.
  CHECK(feed->first_step() == 1);
  feed->pass(std::chrono::seconds(2));
  feed->take(kTrainer, 2);
  CHECK(feed->first_step() == 2);
  totals = feed->outcomes(kActor)->totals;
  CHECK(totals[kDoneTotal] == 8);
}

TEST_CASE(
    "delivery: spool: a group that was begun is completed after a restart, and a closed one stays "
    "so") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.groups = LiveGroups::step;
  FeedWithSpool feed(settings);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{0, 5, 0, 7, 3}, {1, 4, 0, 8, 2}, {2, 4, 0, 7, 3}});
  wire::AbandonT abandon;
  abandon.producer = 1;
  abandon.group = 8;
  abandon.count = 1;
  feed->ask(kActor, abandon);
  abandon.group = 9;  // no producer has begun it
  feed->ask(kActor, abandon);
  feed.restart();
  CHECK(feed->status().groups == 1);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{3, 2, 0, 7, 3}});
  feed->take(kTrainer, 0);
  REQUIRE(feed->steps() == 1);
  CHECK(feed->rows(0) == rows_of("actor", 0, 4));
  feed.restart();
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(
      kActor,
      {{4, 2, 0, 7, 3}, {5, 2, 0, 9, 3}, {6, 2, 0, 9, 3}, {7, 1, 0, 10, 2}, {8, 1, 0, 10, 2}});
  const auto outcomes = feed->outcomes(kActor);
  REQUIRE(outcomes);
  CHECK(outcomes->outcomes.at(4) == wire::Outcome::abandoned);  // its group was delivered
  feed->take(kTrainer, 1);
  CHECK(feed->rows(1) == rows_of("actor", 5, 9));  // one of three was abandoned before
}

TEST_CASE("delivery: spool: lanes go on with their sequences") {
  FeedSettings settings = live_feed(2);
  settings.live->pool.step_unit = StepUnit::lanes;
  settings.live->pool.unroll = 4;
  FeedWithSpool feed(settings);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{0, 9}, {1, 5}, {2, 3}});
  const auto parts = [&feed](std::uint64_t step) {
    std::vector<Row> rows;
    feed->source().rows(BatchIndex{step}, rows);
    std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> all;
    for (const Row& row : rows) all.emplace_back(row.ordinal, row.start, row.length);
    return all;
  };
  using Parts = decltype(parts(0));
  feed->take(kTrainer, 0);
  CHECK(parts(0) == Parts{{0, 0, 4}, {1, 0, 4}});
  feed.restart();
  CHECK(parts(0) == Parts{{0, 0, 4}, {1, 0, 4}});
  feed->take(kTrainer, 1);
  CHECK(parts(1) == Parts{{0, 4, 4}, {1, 4, 1}});
  feed.restart();
  CHECK(parts(1) == Parts{{0, 4, 4}, {1, 4, 1}});
  feed->take(kTrainer, 2);
  CHECK(parts(2) == Parts{{0, 8, 1}, {2, 0, 3}});
  REQUIRE(feed->produce(kActor, "actor"));
  CHECK(feed->outcomes(kActor)->totals[kWaitingTotal] == 0);
}

TEST_CASE("delivery: spool: versions, staleness and deliveries go on") {
  FeedSettings settings = live_feed(2);
  settings.live->pool.max_staleness = 2;
  settings.live->pool.stale = StalePolicy::drop;
  settings.live->pool.reuse = 2;
  FeedWithSpool feed(settings);
  const auto advance = [&](std::uint64_t version) {
    wire::AdvanceT told;
    told.version = version;
    feed->ask(kTrainer, told);
  };
  REQUIRE(feed->produce(kActor, "actor"));
  advance(5);
  feed->push(kActor, offered_between(0, 2, 5));
  feed->push(kActor, offered_between(2, 4, 4));
  feed->take(kTrainer, 0);
  REQUIRE(feed->steps() == 1);
  const NamedRows first = feed->rows(0);
  feed.restart();
  CHECK(feed->produce(kActor, "actor")->version == 5);
  advance(7);  // what is of version 4 and waits is too stale by that
  std::map<std::pair<std::string, std::uint64_t>, int> times;
  for (const auto& row : feed->rows(0)) ++times[row];
  for (std::uint64_t step = 1; step < 4; ++step) {
    feed->take(kTrainer, step);
    if (feed->steps() <= step) break;
    for (const auto& row : feed->rows(step)) ++times[row];
  }
  for (const auto& [row, count] : times) CHECK(count <= 2);
  const auto totals = feed->outcomes(kActor)->totals;
  CHECK(std::accumulate(totals.begin(), totals.end(), std::uint64_t{0}) == 4);
}

TEST_CASE(
    "delivery: spool: of the folder of another feed nothing is taken, and it says what it is of") {
  FeedWithSpool feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered_between(0, 2));
  CHECK(Spool::open(feed.settings(), 9).error().code == ErrorCode::busy);
  feed.kill();
  const auto refusal = [&](auto change) {
    FeedSettings other = feed.settings();
    change(other);
    const auto opened = Spool::open(other, 9);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::bad_configuration);
    return opened.error().message;
  };
  CHECK(refusal([](FeedSettings& other) { other.name = "other"; }).find("feed live") !=
        std::string::npos);
  CHECK(refusal([](FeedSettings& other) { other.plan.world = 2; }).find("plan.world 1") !=
        std::string::npos);
  CHECK(refusal([](FeedSettings& other) {
          other.live->pool.groups = LiveGroups::step;
        }).find("live.groups none") != std::string::npos);
  CHECK(refusal([](FeedSettings& other) {
          other.live->schema.fields[0].name = "y";
        }).find("fields ") != std::string::npos);
  const auto own = Spool::open(feed.settings(), 9);
  REQUIRE(own);
  CHECK(own->feed.sequences.size() == 2);
}

TEST_CASE("delivery: spool: a feed that has ended and was delivered begins as a new one") {
  FeedWithSpool feed(live_feed(2));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered_between(0, 2));
  feed->take(kTrainer, 0);
  feed->ask(kTrainer, wire::EndFeedT{});
  feed.restart();
  CHECK(feed->produce(kActor, "actor")->next == 2);  // its step is kept
  feed->pass(std::chrono::seconds(2));
  feed->take(kTrainer, 1);
  feed.restart();
  const auto produced = feed->produce(kActor, "actor");
  CHECK(produced->next == 0);
  CHECK(produced->incarnation == 3);
}

TEST_CASE("delivery: spool: any byte that is another is found, or changes nothing that is told") {
  FeedWithSpool feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->take(kTrainer, 0);
  feed->push(kActor, offered_between(0, 7));
  REQUIRE(feed->steps() == 1);
  const NamedRows rows = feed->rows(0);
  feed.kill();
  std::string whole;
  {
    std::ifstream in(feed.data(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::size_t found = 0;
  const LeaksAreKnown here;
  for (std::size_t at = 0; at < whole.size(); at += 127) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
    std::ofstream(feed.data(), std::ios::binary) << other;
    const auto opened = Spool::open(feed.settings(), 9);
    if (!opened) {
      ++found;
      CHECK(opened.error().message.find("spool") != std::string::npos);
    }
  }
  CHECK(found > 10);
  std::ofstream(feed.data(), std::ios::binary) << whole;
  feed.restart();
  CHECK(feed->rows(0) == rows);
}
