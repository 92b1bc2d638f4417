// Live feeds through a server: what producers push, and what trainers get of it.

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "tests/delivery/live/raw_producer.h"
#include "tests/delivery/talk.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Whether the rows of a batch have the values that their numbers stand for.
bool has_its_values(const SeenBatch& batch) {
  std::uint32_t longest = 0;
  for (const std::uint32_t length : batch.lengths) longest = std::max(longest, length);
  for (std::size_t r = 0; r < batch.lengths.size(); ++r) {
    for (std::size_t i = 0; i < 2 * std::size_t{batch.lengths[r]}; ++i) {
      float found = 0;
      std::memcpy(&found, batch.x.data() + (r * longest * 2 + i) * sizeof found, sizeof found);
      if (found != x_value(batch.numbers[r], i)) return false;
    }
  }
  return true;
}

std::vector<Offered> four(std::uint64_t first = 0) {
  return {{first, 5}, {first + 1, 9}, {first + 2, 1}, {first + 3, 30}};
}

}  // namespace

TEST_CASE("delivery: what a producer pushes is cut into steps, and comes to a trainer") {
  for (const std::uint64_t area : {std::uint64_t{0}, std::uint64_t{1} << 18}) {
    CAPTURE(area);
    TestServer server(live_feed(4));
    RawTrainer trainer(server);
    REQUIRE(trainer.subscribed());
    CHECK(trainer.subscribed()->steps == 0);
    CHECK(server.feed().state == FeedState::serving);
    trainer.wait();
    RawProducer producer(server, "actor", area);
    CHECK(producer.produced().next == 0);
    CHECK((producer.produced().area != 0) == (area != 0));
    CHECK(producer.push(four()) == 4);
    const auto batch = trainer.next();
    REQUIRE(batch);
    CHECK(batch->ticket.step == 0);
    CHECK(batch->lengths == std::vector<std::uint32_t>{30, 9, 5, 1});
    CHECK(batch->numbers == std::vector<std::uint64_t>{3, 1, 0, 2});
    CHECK(batch->weights == std::vector<float>{1, 1, 1, 1});
    CHECK(batch->producers == std::vector<std::string>(4, "actor"));
    CHECK(batch->batch_frames == 45);
    CHECK(batch->step_sequences == 4);
    CHECK(batch->loss_weight == 1.0);
    CHECK(has_its_values(*batch));
    CHECK(producer.outcomes()->outcomes == std::vector<wire::Outcome>(4, wire::Outcome::delivered));
    trainer.release(*batch);
    if (area != 0) {
      const auto freed = producer.client().receive_news();
      REQUIRE(freed);
      REQUIRE(freed->as<wire::Freed>() != nullptr);
      CHECK(freed->as<wire::Freed>()->numbers()->size() == 4);
    }
    CHECK(server.eventually([&](TestServer&) {
      return producer.outcomes()->outcomes == std::vector<wire::Outcome>(4, wire::Outcome::done);
    }));
  }
}

TEST_CASE("delivery: each rank gets a batch of each step, and an evaluator gets the same") {
  const TestServer server(live_feed(4, 2));
  wire::SubscribeT first;
  first.mode = wire::Mode::sharded;
  first.ranks = 2;
  wire::SubscribeT second = first;
  second.rank = 1;
  RawTrainer ranks[] = {RawTrainer(server, first), RawTrainer(server, second)};
  RawTrainer evaluator(server);
  for (RawTrainer& rank : ranks) rank.wait();
  evaluator.wait();
  RawProducer producer(server, "actor");
  for (std::uint64_t step = 0; step < 5; ++step) {
    CHECK(producer.push(four(4 * step)) == 4 * step + 4);
    std::set<std::uint64_t> numbers;
    std::vector<std::vector<std::uint64_t>> batches(2);
    for (RawTrainer& rank : ranks) {
      const auto batch = rank.next();
      REQUIRE(batch);
      CHECK(batch->ticket.step == step);
      CHECK(has_its_values(*batch));
      CHECK(batch->step_sequences == 4);
      CHECK(batch->step_frames == 45);
      numbers.insert(batch->numbers.begin(), batch->numbers.end());
      batches[batch->ticket.index % 2] = batch->numbers;
      rank.release(*batch);
      rank.wait();
    }
    CHECK(numbers.size() == 4);
    for (int i = 0; i < 2; ++i) {
      const auto batch = evaluator.next();
      REQUIRE(batch);
      CHECK(batch->numbers == batches[batch->ticket.index % 2]);
      evaluator.release(*batch);
      evaluator.wait();
    }
  }
}

TEST_CASE("delivery: a producer that starts again goes on after what was accepted") {
  TestServer server(live_feed(4));
  {
    RawProducer producer(server, "actor");
    CHECK(producer.push(four()) == 4);
    RawProducer nameless(server, "");
    CHECK(nameless.push(four()) == 4);
    RawClient other(server.endpoint());
    wire::HelloT hello;
    hello.protocol = kProtocolVersion;
    hello.produces = hello.inline_batches = true;
    REQUIRE(other.hello(hello) != 0);
    wire::ProduceT taken;
    taken.producer = 1;
    taken.feed = "live";
    taken.name = "actor";
    other.send(std::move(taken));
    const auto refused = other.receive_news();
    REQUIRE(refused);
    REQUIRE(refused->as<wire::Refused>() != nullptr);
    CHECK(refused->as<wire::Refused>()->code() == static_cast<int>(ErrorCode::busy));
    CHECK(refused->as<wire::Refused>()->producer() == 1);
    producer.client().send(wire::ByeT{});
    CHECK(server.eventually([](TestServer& all) { return all.sessions() == 2; }));
  }
  RawProducer again(server, "actor");
  CHECK(again.produced().next == 4);
  CHECK(again.push(four(2)) == 6);  // two of them are repeats
  const auto outcomes = again.outcomes();
  REQUIRE(outcomes);
  CHECK(outcomes->duplicates == 2);
  CHECK(outcomes->outcomes.size() == 6);
}

TEST_CASE("delivery: pushes wait for room, and say so when their time is over") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.pool_sequences = 6;
  const TestServer server(std::move(settings));
  RawProducer producer(server, "actor");
  CHECK(producer.push(four()) == 4);
  producer.offer(four(4), 50);
  const auto late = producer.accepted();
  REQUIRE(late);
  CHECK(late->next == 6);
  CHECK(late->code == static_cast<int>(ErrorCode::timed_out));
  CHECK(producer.outcomes()->refused_full == 1);
  producer.offer(four(6));
  RawTrainer trainer(server);
  trainer.wait();
  const auto batch = trainer.next();
  REQUIRE(batch);
  const auto accepted = producer.accepted();
  REQUIRE(accepted);
  CHECK(accepted->next == 10);
}

TEST_CASE("delivery: claims wait for a trainer, and stale sequences are dropped") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.max_staleness = 1;
  const TestServer server(std::move(settings));
  RawProducer producer(server, "actor");
  const auto early = producer.claim(1, 20);
  REQUIRE(early);
  CHECK(early->code == static_cast<int>(ErrorCode::timed_out));
  CHECK(early->text == "trainer");
  RawTrainer trainer(server);
  CHECK(trainer.advance(3) == 3);
  const auto granted = producer.claim(2);
  REQUIRE(granted);
  CHECK(granted->code == 0);
  CHECK(granted->version == 3);
  const auto never = producer.claim(1000);
  REQUIRE(never);
  CHECK(never->code == static_cast<int>(ErrorCode::does_not_fit));
  CHECK(producer.push({{0, 3, 3}, {1, 3, 1}}) == 2);
  const auto outcomes = producer.outcomes();
  REQUIRE(outcomes);
  CHECK(outcomes->outcomes ==
        std::vector<wire::Outcome>{wire::Outcome::waiting, wire::Outcome::dropped_stale});
}

TEST_CASE("delivery: a trainer of a live feed waits for a step, or the daemon for what it holds") {
  TestServer server(live_feed(1));
  wire::SubscribeT request;
  request.window = 1;
  RawTrainer trainer(server, request);
  trainer.wait();
  const auto waits_for = [&server](WaitingFor what) {
    return server.eventually([what](TestServer& all) {
      const FeedStatus feed = all.feed();
      return feed.subscribers.at(0).waiting == what;
    });
  };
  CHECK(waits_for(WaitingFor::step));
  CHECK(server.eventually([](TestServer& all) { return all.feed().waited.steps > 0.0; }));
  CHECK(server.feed().live->producers.empty());
  RawProducer producer(server, "actor");
  CHECK(producer.push({{0, 5}}) == 1);
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(waits_for(WaitingFor::client));
  const FeedStatus feed = server.feed();
  CHECK(feed.live->steps == 1);
  CHECK(feed.live->in_steps == 1);
  CHECK(feed.live->producers.at(0).name == "actor");
}

TEST_CASE("delivery: what a producer must not say is refused, and the next push is taken") {
  const TestServer server(live_feed(4));
  RawProducer producer(server, "actor", 1 << 18);
  const auto refused = [&](const std::vector<Offered>& sequences, std::uint64_t at = 0) {
    producer.offer(sequences, -1, at);
    const auto answer = producer.accepted();
    REQUIRE(answer);
    CHECK(answer->next == 0);
    return answer->text;
  };
  CHECK(refused({{1, 5}}) == "sequence 1: 0 comes next");
  CHECK(refused({{0, 101}}) == "101 frames are more than live.max_length = 100");
  CHECK(refused({{0, 5, 9}}) == "version 9 was never announced");
  CHECK(refused({{0, 5, 0, kNoGroup, 0, -1}}) == "sequence 0: weight -1; allowed: 0 and up");
  CHECK(refused({{0, 5}}, 32) == "sequence 0: offset 32; allowed: multiples of 64 up to 262144");
  CHECK(producer.push(four()) == 4);
}

TEST_CASE("delivery: a trainer that stands still costs no more than a pool, and is told so") {
  FeedSettings settings = live_feed(1);
  settings.live->pool.pool_bytes = 64 * 1024;
  settings.slots = 4;
  const TestServer server(std::move(settings));
  RawTrainer still(server);
  RawTrainer trainer(server);
  RawProducer producer(server, "actor");
  trainer.wait();
  for (std::uint64_t number = 0; number < 200; ++number) {
    CHECK(producer.push({{number, 100}}) == number + 1);
    const auto batch = trainer.next();
    REQUIRE(batch);
    trainer.release(*batch);
    trainer.wait();
  }
  still.wait();
  while (const auto batch = still.next()) {
    CHECK(batch->numbers.front() < 190);
    still.release(*batch);
    still.wait();
  }
  REQUIRE(still.refused());
  CHECK(still.refused()->code == static_cast<int>(ErrorCode::not_found));
  CHECK(still.refused()->message.find("is kept no longer") != std::string::npos);
  wire::SubscribeT request;
  request.step = 200;
  RawTrainer again(server, request);
  REQUIRE(again.subscribed());
  CHECK(again.subscribed()->step == 200);
}

TEST_CASE("delivery: a trainer that keeps up may be some steps behind, however much has come") {
  FeedSettings settings = live_feed(1);
  settings.live->pool.pool_bytes = 64 * 1024;
  const TestServer server(std::move(settings));
  wire::SubscribeT request;
  request.window = 4;
  RawTrainer trainer(server, request);
  RawProducer producer(server, "actor");
  for (std::uint64_t number = 0; number < 200; number += 4) {  // 1.3 KB each, 260 KB in all
    trainer.wait();
    CHECK(producer.push({{number, 100}, {number + 1, 100}, {number + 2, 100}, {number + 3, 100}}) ==
          number + 4);
    for (std::uint64_t step = number; step < number + 4; ++step) {
      const auto batch = trainer.next();
      REQUIRE(batch);
      CHECK(batch->numbers.front() == step);
      trainer.release(*batch);
    }
  }
}

TEST_CASE("delivery: the end of a live feed comes to trainers after the rest") {
  const TestServer server(live_feed(4));
  RawTrainer trainer(server);
  trainer.wait();
  RawProducer producer(server, "actor");
  CHECK(producer.push({{0, 5}, {1, 6}}) == 2);
  wire::EndFeedT end;
  end.feed = "live";
  producer.client().send(std::move(end));
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(batch->numbers == std::vector<std::uint64_t>{1, 0});
  trainer.release(*batch);
  trainer.wait();
  const auto message = trainer.client().receive_news();
  REQUIRE(message);
  REQUIRE(message->as<wire::EpochEnd>() != nullptr);
  CHECK(message->as<wire::EpochEnd>()->last());
  CHECK(message->as<wire::EpochEnd>()->steps() == 1);
  producer.offer({{2, 5}});
  const auto answer = producer.accepted();
  REQUIRE(answer);
  CHECK(answer->ended);
}

TEST_CASE("delivery: a batch that is larger than a slot waits for larger slots") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.max_length = 2000;
  settings.live->pool.step_unit = StepUnit::frames;
  settings.live->pool.step = 4000;
  TestServer server(std::move(settings));
  RawTrainer trainer(server);
  trainer.wait();
  RawProducer producer(server, "actor", 1 << 19);
  std::vector<Offered> one_long{{0, 2000}};
  for (std::uint64_t number = 1; number <= 1000; ++number) one_long.push_back({number, 2});
  CHECK(producer.push(one_long) == 1001);
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(batch->lengths.size() == 1001);
  CHECK(has_its_values(*batch));
  CHECK(server.feed().slot_bytes > 24'000'000);
}

TEST_CASE("delivery: workers of a live queue share its batches, and what one leaves is another's") {
  const TestServer server(live_feed(1));
  wire::SubscribeT request;
  request.mode = wire::Mode::queue;
  request.window = 1;  // so that it is known which trainer gets which
  RawTrainer first(server, request);
  REQUIRE(first.subscribed());
  RawProducer producer(server, "actor");
  first.wait();
  CHECK(producer.push({{0, 5}}) == 1);
  const auto batch = first.next();
  REQUIRE(batch);
  RawTrainer second(server, request);
  REQUIRE(second.subscribed());
  second.wait();
  CHECK(producer.push({{1, 6}}) == 2);
  const auto other = second.next();
  REQUIRE(other);
  CHECK(other->numbers == std::vector<std::uint64_t>{1});
  second.client().send(wire::ByeT{});
  first.release(*batch);
  first.wait();
  const auto again = first.next();
  REQUIRE(again);
  CHECK(has_its_values(*again));
  CHECK(again->numbers == std::vector<std::uint64_t>{1});
  first.release(*again);
}

TEST_CASE("delivery: outcomes of a producer that is gone are remembered until all are settled") {
  Outcomes outcomes;
  for (std::uint64_t number = 0; number < 3; ++number) outcomes.set(number, wire::Outcome::waiting);
  outcomes.set(1, wire::Outcome::done);
  outcomes.forget_settled();
  std::uint64_t first = 0;
  CHECK(outcomes.list(first, 10) == std::vector<wire::Outcome>{wire::Outcome::waiting,
                                                               wire::Outcome::done,
                                                               wire::Outcome::waiting});
  outcomes.set(0, wire::Outcome::delivered);
  outcomes.set(0, wire::Outcome::done);
  outcomes.set(2, wire::Outcome::abandoned);
  outcomes.forget_settled();
  CHECK(outcomes.list(first, 10).empty());
  CHECK(first == 3);
  CHECK(outcomes.totals()[static_cast<std::size_t>(wire::Outcome::done)] == 2);
}

TEST_CASE("delivery: a frame that comes in parts is pushed as one that is whole") {
  TestServer server(live_feed(4));
  RawTrainer trainer(server);
  trainer.wait();
  RawProducer producer(server, "actor");
  const auto answer = producer.push_in_parts(four(), 100);
  REQUIRE(answer);
  CHECK_MESSAGE(answer->code == 0, answer->text);
  CHECK(answer->next == 4);
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(batch->numbers == std::vector<std::uint64_t>{3, 1, 0, 2});
  CHECK(has_its_values(*batch));
}
