// Daemon, producers and trainers of a live feed die, and what becomes of what was pushed. The
// client's side of a daemon's death is in tests/client/produce/away_test.cpp.

#include <doctest/doctest.h>

#include "tests/delivery/live/virtual_live_service.h"
#include "tests/delivery/talk.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Rows = std::vector<std::pair<std::string, std::uint64_t>>;

std::vector<Offered> offered_four(std::uint64_t first = 0) {
  return {{first, 5}, {first + 1, 9}, {first + 2, 1}, {first + 3, 30}};
}

Rows four_of(const std::string& name, std::uint64_t first = 0) {
  return {{name, first}, {name, first + 1}, {name, first + 2}, {name, first + 3}};
}

FeedSettings small_pool() {
  FeedSettings settings = live_feed(4);
  settings.live->pool.pool_sequences = 4;
  return settings;
}

}  // namespace

TEST_CASE("delivery: a producer that dies before its push is accepted leaves nothing behind") {
  VirtualLiveService desk(small_pool());
  REQUIRE(desk.produce(kActor, "actor"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.push(kActor, offered_four());
  desk.push(kOther, offered_four());  // it waits for room
  CHECK_FALSE(desk.answer<wire::Accepted>(kOther));
  desk.end_session(kOther);
  desk.take(kTrainer, 0);
  CHECK(desk.rows(0) == four_of("actor"));
  desk.push(kActor, offered_four(4));
  desk.take(kTrainer, 1);
  CHECK(desk.rows(1) == four_of("actor", 4));
  const auto again = desk.produce(kNext, "other");
  REQUIRE(again);
  CHECK(again->next == 0);
  CHECK(desk.outcomes(kNext)->totals == std::vector<std::uint64_t>(kOutcomes, 0));
}

TEST_CASE("delivery: the room of a producer that dies is another's") {
  ProducerAreas areas(ArenaNumber{1}, 1 << 17);
  REQUIRE(areas.give(kActor, 1 << 17));
  CHECK_FALSE(areas.give(kOther, 1 << 16));
  areas.forget(kActor);
  CHECK(areas.give(kOther, 1 << 16));
}

TEST_CASE("delivery: what a dead producer had accepted is delivered, in each order of deaths") {
  for (const bool producer_first : {true, false}) {
    CAPTURE(producer_first);
    VirtualLiveService desk(live_feed(4));
    {
      auto area = ProducerArea::create(1 << 16);
      REQUIRE(area);
      const WrittenArea written(*area);
      REQUIRE(desk.produce(kActor, "actor", written.shared()));
      desk.take(kTrainer, 0);
      written.push(desk, kActor, offered_four());
      CHECK(desk.answer<wire::Accepted>(kActor)->next == 4);
      if (!producer_first) desk.leave(kTrainer);
      desk.end_session(kActor);
    }  // its own memory and descriptor are gone
    if (producer_first) desk.leave(kTrainer);
    desk.take(kNext, 0);
    REQUIRE(desk.steps() == 1);
    CHECK(desk.rows(0) == four_of("actor"));
    CHECK(desk.has_its_values(0));
  }
}

TEST_CASE("delivery: a producer that dies within a push is told where to go on") {
  VirtualLiveService desk(small_pool());
  REQUIRE(desk.produce(kActor, "actor"));
  std::vector<Offered> six = offered_four();
  six.push_back({4, 2});
  six.push_back({5, 2});
  desk.push(kActor, six);  // four of them fit
  desk.end_session(kActor);
  CHECK(desk.produce(kNext, "actor")->next == 4);
  desk.take(kTrainer, 0);
  desk.push(kNext, six);
  CHECK(desk.answer<wire::Accepted>(kNext)->next == 6);
  CHECK(desk.outcomes(kNext)->duplicates == 4);
}

TEST_CASE("delivery: a daemon that starts again knows nothing of what another had") {
  VirtualLiveService before(live_feed(4));
  REQUIRE(before.produce(kActor, "actor"));
  before.push(kActor, offered_four());
  before.take(kTrainer, 0);
  before.push(kActor, offered_four(4));  // these wait; with the first four, they are lost with it
  VirtualLiveService after(live_feed(4), 2);
  const auto produced = after.produce(kActor, "actor");
  REQUIRE(produced);
  CHECK(produced->incarnation == 2);
  CHECK(produced->next == 0);
  const auto outcomes = after.outcomes(kActor);
  REQUIRE(outcomes);
  CHECK(outcomes->outcomes.empty());
  CHECK(outcomes->totals == std::vector<std::uint64_t>(kOutcomes, 0));
  after.push(kActor, offered_four());
  after.take(kTrainer, 0);
  CHECK(after.rows(0) == four_of("actor"));  // and nothing of before
}

TEST_CASE("delivery: after a daemon's death claims wait until a trainer is there again") {
  VirtualLiveService after(live_feed(4), 2);
  REQUIRE(after.produce(kActor, "actor"));
  after.push(kActor, {{0, 5, 3}});  // of a version of before
  CHECK(after.answer<wire::Accepted>(kActor)->text == "version 3 was never announced");
  after.claim(kActor, 1);
  CHECK_FALSE(after.answer<wire::Claimed>(kActor));
  wire::AdvanceT advance;
  advance.version = 3;
  after.ask(kTrainer, std::move(advance));
  const auto claimed = after.answer<wire::Claimed>(kActor);
  REQUIRE(claimed);
  CHECK(claimed->version == 3);
  after.push(kActor, {{0, 5, 3}});
  CHECK(after.answer<wire::Accepted>(kActor)->next == 1);
}

TEST_CASE("delivery: the step that a trainer died with is kept for one that comes back") {
  TestServer server(live_feed(4));
  RawProducer producer(server, "actor");
  {
    RawTrainer trainer(server);
    trainer.wait();
    CHECK(producer.push(offered_four()) == 4);
    REQUIRE(trainer.next());
    trainer.client().send(wire::ByeT{});
    CHECK(server.eventually([](TestServer& all) { return all.sessions() == 1; }));
  }
  RawTrainer again(server);
  REQUIRE(again.subscribed());
  CHECK(again.subscribed()->step == 0);
  again.wait();
  const auto batch = again.next();
  REQUIRE(batch);
  CHECK(batch->numbers == std::vector<std::uint64_t>{3, 1, 0, 2});
}

TEST_CASE(
    "delivery: each producer is told that its feed has ended, also one that asks for nothing") {
  VirtualLiveService desk(small_pool());
  REQUIRE(desk.produce(kActor, "actor"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.push(kOther, {{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}});  // the last one waits
  desk.ask(kTrainer, wire::EndFeedT{});
  CHECK(desk.answer<wire::Accepted>(kActor)->ended);
  const auto waited = desk.answer<wire::Accepted>(kOther);
  REQUIRE(waited);
  CHECK(waited->ended);
  CHECK(waited->next == 4);
  CHECK_FALSE(desk.answer<wire::Accepted>(kOther));
}

TEST_CASE("delivery: a trainer that keeps up has each step, however much has passed") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.pool_bytes = 64 * 1024;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kActor, "actor"));
  for (std::uint64_t step = 0; step < 50; ++step) {
    desk.take(kTrainer, step);
    desk.push(kActor,
              {{4 * step, 100}, {4 * step + 1, 100}, {4 * step + 2, 100}, {4 * step + 3, 9}});
    desk.take(kTrainer, step);
    REQUIRE(desk.rows(step) == four_of("actor", 4 * step));
    desk.release(kTrainer, step + 1);
  }
}

TEST_CASE("delivery: an end with a question is answered, also where there is nothing to end") {
  const TestServer server(live_feed(4));
  RawProducer producer(server, "actor");
  const auto answered = [&producer](const std::string& feed, std::uint32_t question) {
    wire::EndFeedT end;
    end.feed = feed;
    end.question = question;
    producer.client().send(std::move(end));
    auto message = producer.client().receive_news();
    if (message && message->as<wire::Accepted>() != nullptr) {  // a producer hears of the end, too
      message = producer.client().receive_news();
    }
    REQUIRE(message);
    const auto* version = message->as<wire::Version>();
    REQUIRE(version != nullptr);
    CHECK(version->question() == question);
    return static_cast<ErrorCode>(version->code());
  };
  CHECK(answered("none", 1) == ErrorCode::not_found);
  CHECK(answered("live", 2) == ErrorCode{});
  CHECK(answered("live", 3) == ErrorCode{});  // it has ended
}

TEST_CASE("delivery: a position in a live feed that has begun again is refused with the way out") {
  const TestServer server(live_feed(4));
  RawTrainer trainer(server);
  REQUIRE(trainer.subscribed());
  wire::SubscribeT again;
  again.expects_fingerprint = true;
  again.step = 3;
  const Fingerprint here = from_wire(*trainer.subscribed()->fingerprint);
  again.fingerprint = std::make_unique<wire::Fingerprint>(
      to_wire({here.data + 1, here.settings, here.seed}));  // of another incarnation
  const RawTrainer other(server, std::move(again));
  REQUIRE(other.refused());
  CHECK(other.refused()->message.find("the live feed has begun anew, and a subscription without a "
                                      "position goes on") != std::string::npos);
}

TEST_CASE(
    "delivery: steps are kept from the lowest mark on, and that of the dead until a later one") {
  VirtualLiveService desk(live_feed(4));
  REQUIRE(desk.produce(kActor, "actor"));
  const auto train = [&desk](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t step = from; step < to; ++step) {
      desk.push(kActor, offered_four(4 * step));
      desk.take(kTrainer, step);
      desk.release(kTrainer, step + 1);
    }
  };
  train(0, 2);
  CHECK(desk.desk().first_kept() == Step{2});
  desk.mark(kTrainer, 2);
  desk.mark(kOther, 3);
  train(2, 6);
  CHECK(desk.desk().first_kept() == Step{2});
  CHECK(desk.desk().first_asked_for() == Step{6});  // where a newcomer begins
  CHECK(desk.rows(2) == four_of("actor", 8));
  CHECK(desk.outcomes(kActor)->outcomes == std::vector<wire::Outcome>(24, wire::Outcome::done));
  desk.end_session(kTrainer);
  desk.mark(kOther, 2);
  train(6, 7);
  CHECK(desk.desk().first_kept() == Step{2});
  desk.mark(kOther, 5);
  train(7, 8);
  CHECK(desk.desk().first_kept() == Step{5});
  CHECK(desk.rows(4).empty());
  CHECK(desk.rows(5) == four_of("actor", 20));
}

TEST_CASE("delivery: marked steps have as many bytes as the pool, and the oldest go first") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.pool_bytes = 64 * 1024;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kActor, "actor"));
  desk.mark(kTrainer, 0);
  for (std::uint64_t step = 0; step < 50; ++step) {
    desk.push(kActor,
              {{4 * step, 100}, {4 * step + 1, 100}, {4 * step + 2, 100}, {4 * step + 3, 100}});
    desk.take(kTrainer, step);
    REQUIRE(desk.rows(step) == four_of("actor", 4 * step));
    desk.release(kTrainer, step + 1);
  }
  // A step has 4 x (100 x 12 + 4) bytes: 13 of them are within the limit.
  CHECK(desk.desk().first_kept() == Step{50 - 13});
}

TEST_CASE("delivery: marked steps leave each producer half of its area") {
  VirtualLiveService desk(live_feed(4));
  auto area = ProducerArea::create(1 << 16);
  REQUIRE(area);
  const WrittenArea written(*area);
  REQUIRE(desk.produce(kActor, "actor", written.shared()));
  desk.mark(kTrainer, 0);
  std::size_t freed = 0;
  for (std::uint64_t step = 0; step < 50; ++step) {
    written.push(desk, kActor,
                 {{4 * step, 100}, {4 * step + 1, 100}, {4 * step + 2, 100}, {4 * step + 3, 100}});
    desk.take(kTrainer, step);
    desk.release(kTrainer, step + 1);
    while (const auto told = desk.answer<wire::Freed>(kActor)) freed += told->numbers.size();
  }
  CHECK(desk.desk().first_kept() == Step{50 - 6});
  CHECK(freed == 4 * (50 - 6));
}

TEST_CASE("delivery: a trainer goes on at its mark, and before it is told where it can") {
  const TestServer server(live_feed(4));
  RawProducer producer(server, "actor");
  const auto mark = [](RawTrainer& trainer, std::uint64_t step) {
    wire::KeepFromT wanted;
    wanted.feed = "live";
    wanted.step = step;
    trainer.client().send(std::move(wanted));
  };
  std::vector<std::vector<std::uint64_t>> numbers;
  wire::SubscribeT request;
  {
    RawTrainer trainer(server);
    REQUIRE(trainer.subscribed());
    for (std::uint64_t step = 0; step < 4; ++step) {
      trainer.wait();
      CHECK(producer.push(offered_four(4 * step)) == 4 * step + 4);
      const auto batch = trainer.next();
      REQUIRE(batch);
      numbers.push_back(batch->numbers);
      if (step == 1) mark(trainer, 2);
      trainer.release(*batch);
    }
    request.fingerprint = std::make_unique<wire::Fingerprint>(*trainer.subscribed()->fingerprint);
    trainer.client().send(wire::ByeT{});
  }
  request.step = 2;
  RawTrainer again(server, request);
  for (std::uint64_t step = 2; step < 4; ++step) {
    again.wait();
    const auto batch = again.next();
    REQUIRE(batch);
    CHECK(batch->ticket.step == step);
    CHECK(batch->numbers == numbers[step]);
    again.release(*batch);
  }
  request.step = 1;
  RawTrainer late(server, request);
  late.wait();
  CHECK_FALSE(late.next());
  REQUIRE(late.refused());
  CHECK(late.refused()->code == static_cast<std::uint16_t>(ErrorCode::not_found));
  CHECK(late.refused()->message == "step 1 of feed live is kept no longer; the first that is: 2");
}
