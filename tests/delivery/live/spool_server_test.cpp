// A server with a live feed that has a spool ends, and another takes its place.

#include <doctest/doctest.h>

#include <set>

#include "tests/delivery/live/raw_producer.h"
#include "tests/delivery/talk.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::vector<Offered> pushed_between(std::uint64_t first, std::uint64_t end) {
  std::vector<Offered> all;
  for (; first < end; ++first) all.push_back({first, static_cast<std::uint32_t>(1 + first % 7)});
  return all;
}

}  // namespace

TEST_CASE("delivery: spool: a server that starts again delivers what is left, each sequence once") {
  const TemporaryFolder folder;
  FeedSettings settings = live_feed(4);
  settings.live->spool = folder / "spool";
  settings.queue_grace = std::chrono::milliseconds{20};
  std::set<std::uint64_t> numbers;
  const auto take = [&numbers](RawTrainer& trainer, std::uint64_t step) {
    trainer.wait();
    const auto batch = trainer.next();
    REQUIRE(batch);
    CHECK(batch->ticket.step == step);
    for (const std::uint64_t number : batch->numbers) CHECK(numbers.insert(number).second);
    trainer.release(*batch);
  };
  {
    TestServer server(settings);
    RawTrainer trainer(server);
    RawProducer producer(server, "actor");
    REQUIRE(producer.push(pushed_between(0, 14)) == 14);
    take(trainer, 0);
    CHECK(server.eventually([](TestServer& s) { return s.count(FeedCounter::releases) == 1; }));
    server.stop();
  }
  TestServer server(settings);
  RawTrainer trainer(server);
  RawProducer producer(server, "actor");
  CHECK(producer.produced().next == 14);
  CHECK(producer.push(pushed_between(12, 16)) == 16);
  for (std::uint64_t step = 1; step < 4; ++step) take(trainer, step);
  CHECK(numbers.size() == 16);
  CHECK(server.eventually([&producer](TestServer&) {
    return producer.outcomes()->totals.at(static_cast<std::size_t>(wire::Outcome::done)) == 16;
  }));
  CHECK_FALSE(server.feed().failure);
}

TEST_CASE("delivery: spool: a trainer goes on at once at a step that waits for larger slots") {
  const TemporaryFolder folder;
  FeedSettings settings = live_feed(4);
  settings.live->spool = folder / "spool";
  settings.live->pool.max_length = 2000;
  settings.live->pool.step_unit = StepUnit::frames;
  settings.live->pool.step = 4000;
  const auto one_long = [](std::uint64_t first) {
    std::vector<Offered> all{{first, 2000}};
    while (all.size() < 1001) all.push_back({first + all.size(), 2});
    return all;
  };
  wire::SubscribeT second;
  second.step = 1;
  {
    TestServer server(settings);
    RawTrainer trainer(server);
    RawProducer producer(server, "actor", 1 << 19);
    REQUIRE(producer.push(one_long(0)) == 1001);
    trainer.wait();
    const auto batch = trainer.next();
    REQUIRE(batch);
    trainer.wait(1);
    REQUIRE(producer.push(one_long(1001)) == 2002);
    CHECK(trainer.next());
    server.stop();
  }
  TestServer server(settings);
  RawTrainer trainer(server, second);
  REQUIRE(trainer.subscribed());
  trainer.wait();
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(batch->ticket.step == 1);
  CHECK_FALSE(trainer.refused());
}
