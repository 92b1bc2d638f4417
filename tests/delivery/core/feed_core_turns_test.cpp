// Turns of a feed that are taken by hand, one after the other.

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "tests/delivery/core/virtual_feed.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

/// Batches that a feed has begun, in their order, and what becomes of them.
class Begun {
 public:
  explicit Begun(VirtualFeed& feed) : feed_(feed) { turn(); }

  void finish(std::uint64_t lost_values) {
    const Assemble job = take();
    AssembledBatch batch{0, 64, 4, 1, 1, 0, {}};
    batch.lost.values = lost_values;
    feed_.tell(BatchReady{job.assignment, job.data, 0, batch});
    turn();
  }
  void fail(ErrorCode code) {
    const Assemble job = take();
    feed_.tell(BatchFailed{job.assignment, job.data, 0, {code, "it is gone"}});
    turn();
  }

 private:
  void turn() {
    std::vector<FeedAction> actions;
    feed_.core().decide(feed_.now(), actions);
    for (const FeedAction& action : actions) {
      if (const auto* job = std::get_if<Assemble>(&action)) jobs_.push_back(*job);
      if (const auto* log = std::get_if<Log>(&action)) log->note(feed_.log());
    }
  }
  Assemble take() {
    REQUIRE_FALSE(jobs_.empty());
    Assemble job = jobs_.front();
    jobs_.pop_front();
    return job;
  }

  VirtualFeed& feed_;
  std::deque<Assemble> jobs_;
};

wire::SubscribeT worker_of(std::uint64_t until_epoch) {
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  subscribe.epochs = 0;
  subscribe.until_epoch = until_epoch;
  return subscribe;
}

/// The first of two ranks, which does not say where the other is.
wire::SubscribeT first_rank() {
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::sharded;
  subscribe.ranks = 2;
  subscribe.window = 1;
  return subscribe;
}

}  // namespace

TEST_CASE("delivery: values that do not fit are told of once, with the first batch that has some") {
  VirtualFeed feed(sorted_feed(4));
  Begun begun(feed);
  begun.finish(0);
  CHECK(feed.log().get(Event::cast_overflow) == 0);
  begun.finish(1);
  CHECK(feed.log().get(Event::cast_overflow) == 1);
  CHECK(feed.count(FeedCounter::cast_overflows) == 1);
  begun.finish(3);
  CHECK(feed.log().get(Event::cast_overflow) == 1);
  CHECK(feed.count(FeedCounter::cast_overflows) == 4);
}

TEST_CASE(
    "delivery: a feed without data or memory fails at once, and for a bad batch when it is due") {
  for (const ErrorCode code : {ErrorCode::store_unavailable, ErrorCode::busy,
                               ErrorCode::fingerprint_mismatch, ErrorCode::corrupt_record}) {
    CAPTURE(static_cast<int>(code));
    VirtualFeed feed(sorted_feed(4));
    Begun begun(feed);
    begun.finish(0);  // the first batch, without which no client can begin
    begun.fail(code);
    CHECK(feed.core().parts().life.has_ended() == (code != ErrorCode::corrupt_record));
  }
}

TEST_CASE(
    "delivery: that plans take turns is told once clients stand in more epochs than have one") {
  VirtualFeed feed(sorted_feed(4));
  const FeedParts& parts = feed.core().parts();
  std::deque<VirtualClient> clients;
  const auto come = [&] {
    auto subscribe = subscribe_to_train();
    subscribe.epoch = clients.size();
    subscribe.epochs = 1;
    clients.emplace_back(feed).send(std::move(subscribe));
  };
  while (clients.size() < parts.most_plans()) come();
  REQUIRE(feed.eventually([&] { return parts.plans.numbers().size() == parts.most_plans(); }));
  CHECK(feed.log().get(Event::plans_take_turns) == 0);
  come();
  CHECK(feed.eventually([&] { return feed.log().get(Event::plans_take_turns) == 1; }));
}

TEST_CASE("delivery: a worker is told which epoch of the queue is its last") {
  for (const std::uint64_t until : {1U, 2U}) {
    CAPTURE(until);
    FeedSettings settings = sorted_feed(4);
    settings.journal = "journal";
    VirtualFeed feed(settings, 4);
    VirtualClient worker(feed);
    REQUIRE(join(worker, worker_of(until)));
    worker.send(release_of(*next_ticket(worker)));
    const auto end = read_until<wire::EpochEnd>(worker);
    REQUIRE(end);
    CHECK(end->as<wire::EpochEnd>()->last() == (until == 1));
  }
}

TEST_CASE(
    "delivery: a worker without a last epoch has none after a batch that it gives back late") {
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings, 4);
  VirtualClient worker(feed);
  REQUIRE(join(worker, worker_of(0)));
  auto undone = release_of(*next_ticket(worker));
  undone.undone = true;
  worker.say_waiting(1, 1);  // for the epoch's end, with its only batch in hand
  REQUIRE(read_until<wire::EpochEnd>(worker));
  worker.send(undone);
  const auto again = read_until<wire::Delivery>(worker);
  REQUIRE(again);
  CHECK(again->as<wire::Delivery>()->epoch() == 0);
  CHECK(again->as<wire::Delivery>()->attempt() == 2);
  worker.send(release_of(unpacked(*again->as<wire::Delivery>())));
  const auto end = read_until<wire::EpochEnd>(worker);
  REQUIRE(end);
  CHECK_FALSE(end->as<wire::EpochEnd>()->last());
}

TEST_CASE("delivery: a rank that has released more than a window shows that its job is complete") {
  VirtualFeed feed(sorted_feed(4, 2));
  const SlotAdmission& admission = feed.core().parts().subscriptions.admission();
  VirtualClient rank(feed);
  REQUIRE(join(rank, first_rank()));
  for (std::size_t released = 0; released < 2; ++released) {
    const auto ticket = next_ticket(rank);
    REQUIRE(ticket);
    CHECK(admission.absent({2, 0}) == 1);
    rank.send(release_of(*ticket));
  }
  CHECK(admission.absent({2, 0}) == 0);
}

TEST_CASE("delivery: ranks that may be elsewhere are expected for five seconds after the last") {
  VirtualFeed feed(sorted_feed(4, 2));
  const SlotAdmission& admission = feed.core().parts().subscriptions.admission();
  VirtualClient rank(feed);
  REQUIRE(join(rank, first_rank()));
  const auto nothing = [] { return false; };
  CHECK_FALSE(feed.eventually(nothing, 4s));
  CHECK(admission.absent({2, 0}) == 1);
  CHECK_FALSE(feed.eventually(nothing, 2s));
  CHECK(admission.absent({2, 0}) == 0);
}

TEST_CASE("delivery: from its first batch on a client counts as one that has released none") {
  VirtualFeed feed(sorted_feed(4));
  const FeedParts& parts = feed.core().parts();
  VirtualClient client(feed);
  const auto before = feed.now();
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  REQUIRE(join(client, std::move(subscribe)));
  REQUIRE(next_ticket(client));
  CHECK(parts.subscriptions.all().begin()->second.moved >= before);
}
