#include "daemon/delivery/feed/core/feed_core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/delivery/core/virtual_feed.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The latest text of an event; empty: it was not logged.
std::string logged(VirtualFeed& feed, Event event) {
  std::string text;
  for (const LoggedEvent& each : feed.log().latest()) {
    if (each.event == event) text = each.text;
  }
  return text;
}

/// The answer to ListUpcoming, (epoch, index) of each batch.
std::vector<std::pair<std::uint64_t, std::uint64_t>> upcoming(VirtualFeed& feed,
                                                              VirtualClient& client,
                                                              SubscriptionKey key,
                                                              std::uint32_t count) {
  feed.tell(UpcomingAsked{key, 7, count});
  const auto answer = read_until<wire::Upcoming>(client);
  REQUIRE(answer);
  CHECK(answer->as<wire::Upcoming>()->question() == 7);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  for (const auto* batch : *answer->as<wire::Upcoming>()->batches()) {
    CHECK(batch->rows() == 4);
    CHECK(batch->length() != 0);
    CHECK(batch->frames() <= batch->rows() * batch->length());
    CHECK(batch->frames() > 0);
    all.emplace_back(batch->epoch(), batch->index());
  }
  return all;
}

/// All slots are ready, and there is nothing to decide.
void settle(VirtualFeed& feed, std::uint32_t slots) {
  const SlotCache& cache = feed.core().parts().scheduler.cache();
  REQUIRE(feed.eventually(
      [&] { return cache.count(SlotState::ready) == slots && !feed.core().has_work(); }));
}

}  // namespace

TEST_CASE("delivery: a client is told which batches follow those that it was sent") {
  using Batches = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  REQUIRE(join(client, subscribe_to_train()));
  const FeedParts& parts = feed.core().parts();
  REQUIRE(feed.eventually([&] { return feed.count(FeedCounter::batches_delivered) == 4; }));
  const SubscriptionKey key = parts.subscriptions.all().begin()->first;
  CHECK(upcoming(feed, client, key, 3) == Batches{{0, 4}, {0, 5}, {0, 6}});
  CHECK(upcoming(feed, client, key, 0).empty());
  CHECK(upcoming(feed, client, {key.session, SubscriptionNumber{99}}, 3).empty());
}

TEST_CASE("delivery: what comes next goes on into the next epoch, where that is planned") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.epochs = 0;
  REQUIRE(join(client, std::move(subscribe)));
  const FeedParts& parts = feed.core().parts();
  while (!parts.plans.has(Epoch{1})) {
    const auto message = client.receive();
    REQUIRE(message);
    const auto* ticket = message->as<wire::Delivery>();
    if (ticket != nullptr) client.send(release_of(unpacked(*ticket)));
  }
  const SubscriptionKey key = parts.subscriptions.all().begin()->first;
  REQUIRE(feed.eventually([&] { return parts.next_of(parts.subscriptions.at(key)).has_value(); }));
  const BatchId next = *parts.next_of(parts.subscriptions.at(key));
  const std::uint64_t first = 10 * next.epoch.value + next.index.value;  // an epoch has ten
  const std::uint64_t epochs = parts.plans.has(Epoch{next.epoch.value + 1}) ? 2 : 1;
  const auto all = upcoming(feed, client, key, kMostUpcoming);
  REQUIRE(all.size() == 10 * epochs - next.index.value);
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    CHECK(all[i] == std::pair((first + i) / 10, (first + i) % 10));
  }
}

TEST_CASE("delivery: what comes next ends with the last epoch that was asked for") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.epochs = 1;
  REQUIRE(join(client, std::move(subscribe)));
  REQUIRE(feed.eventually([&] {
    return feed.core().parts().plans.has(Epoch{1}) ||
           feed.count(FeedCounter::batches_delivered) == 4;
  }));
  const SubscriptionKey key = feed.core().parts().subscriptions.all().begin()->first;
  CHECK(upcoming(feed, client, key, kMostUpcoming).size() == 6);
}

TEST_CASE("delivery: what comes next begins with the rehearsals, which come again at their place") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  subscribe.worst_first = 1;
  REQUIRE(join(client, std::move(subscribe)));
  const SubscriptionKey key = feed.core().parts().subscriptions.all().begin()->first;
  feed.tell(UpcomingAsked{key, 1, kMostUpcoming});  // before it was given any
  const auto answer = read_until<wire::Upcoming>(client);
  REQUIRE(answer);
  const auto* batches = answer->as<wire::Upcoming>()->batches();
  REQUIRE(batches->size() >= 11);
  CHECK(batches->Get(0)->rehearsal());
  CHECK(batches->Get(0)->index() == 9);
  for (std::uint32_t i = 0; i < 10; ++i) {
    CHECK_FALSE(batches->Get(i + 1)->rehearsal());
    CHECK(batches->Get(i + 1)->index() == i);
  }
}

TEST_CASE("delivery: what comes next to a rank that resumes within an epoch is its own") {
  VirtualFeed feed(sorted_feed(4, 2));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::sharded;
  subscribe.rank = 1;
  subscribe.ranks = 2;
  subscribe.ranks_here = 1;
  subscribe.window = 1;
  subscribe.step = 2;
  REQUIRE(join(client, std::move(subscribe)));
  const auto first = next_ticket(client);
  REQUIRE(first);
  CHECK(first->index == 5);
  const SubscriptionKey key = feed.core().parts().subscriptions.all().begin()->first;
  CHECK(upcoming(feed, client, key, 2) ==
        std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 7}, {0, 9}});
}

TEST_CASE("delivery: what comes next of a queue is what no worker has, as things stand") {
  using Batches = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings);
  VirtualClient one(feed);
  VirtualClient other(feed);
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  subscribe.window = 1;
  REQUIRE(join(one, subscribe));
  REQUIRE(next_ticket(one)->index == 0);
  REQUIRE(join(other, subscribe));
  REQUIRE(next_ticket(other)->index == 1);
  const SubscriptionKey key = feed.core().parts().subscriptions.all().begin()->first;
  CHECK(upcoming(feed, one, key, 3) == Batches{{0, 2}, {0, 3}, {0, 4}});
  other.die();
  CHECK(upcoming(feed, one, key, 3) == Batches{{0, 1}, {0, 2}, {0, 3}});
}

TEST_CASE("delivery: a feed assembles its first batches before a client asks, and is ready then") {
  VirtualFeed feed(sorted_feed(4));
  const FeedParts& parts = feed.core().parts();
  CHECK(parts.life.state() == FeedState::starting);
  CHECK(feed.eventually([&parts] { return parts.life.state() == FeedState::serving; }));
  CHECK(
      feed.eventually([&parts] { return parts.scheduler.cache().count(SlotState::ready) == 10; }));
}

TEST_CASE("delivery: a feed with nothing to do has no work, and asks for nothing") {
  VirtualFeed feed(sorted_feed(4));
  CHECK(!feed.eventually([] { return false; }));
  CHECK(!feed.core().has_work());
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);
  CHECK(actions.empty());
}

TEST_CASE("delivery: slots are filled in groups while each client has enough to go on with") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 16;
  VirtualFeed feed(settings, 400);
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 8;
  REQUIRE(join(client, subscribe));
  std::deque<std::uint64_t> leases;
  while (leases.size() < 8) leases.push_back(next_ticket(client)->lease);
  settle(feed, 16);
  CHECK(!feed.core().is_awaited());
  // Decides once, and returns how many batches it has begun.
  const auto begun = [&] {
    std::vector<FeedAction> actions;
    feed.core().decide(feed.now(), actions);
    return std::count_if(actions.begin(), actions.end(), [](const FeedAction& action) {
      return std::holds_alternative<Assemble>(action);
    });
  };
  const auto release_one = [&] {
    wire::ReleaseT release;
    release.subscription = 1;
    release.leases = {leases.front()};
    leases.pop_front();
    client.send(release);
  };
  for (int i = 0; i < 3; ++i) {
    release_one();
    CHECK(begun() == 0);
  }
  release_one();
  CHECK(begun() == 4);
  client.say_waiting(1, 8);  // it holds what came for those that it released, too
  CHECK(begun() == 0);       // all slots are taken
}

TEST_CASE("delivery: a client that is short has each batch begun, and told of, at once") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 16;
  VirtualFeed feed(settings, 400);
  CHECK(feed.core().is_awaited());  // the feed is not ready yet
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 4;
  REQUIRE(join(client, subscribe));
  CHECK(feed.core().is_awaited());
  std::vector<std::uint64_t> leases;
  while (leases.size() < 4) leases.push_back(next_ticket(client)->lease);
  settle(feed, 16);
  CHECK(!feed.core().is_awaited());
  wire::ReleaseT release;
  release.subscription = 1;
  release.leases = leases;
  client.send(release);
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);
  CHECK(!feed.core().is_awaited());  // four more are on their way
  client.say_waiting(1, 4);
  CHECK(!feed.core().is_awaited());  // it has no credit
  client.die();
  VirtualClient other(feed);
  subscribe.step = 50;  // nothing is assembled of that
  other.send(subscribe);
  feed.core().decide(feed.now(), actions);
  CHECK(feed.core().is_awaited());
}

TEST_CASE("delivery: a broken invariant fails the feed, with its last events in the log") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  REQUIRE(join(client, subscribe_to_train()));
  REQUIRE(next_ticket(client));
  const FeedParts& parts = feed.core().parts();
  std::uint32_t free = 0;  // a slot that no client holds
  while (parts.scheduler.cache().is_held(SlotIndex{free})) ++free;
  feed.tell(BatchSent{{parts.scheduler.slots(), SlotIndex{free}}});
  REQUIRE(read_until<wire::Refused>(client));
  CHECK(parts.life.why()->message ==
        "feed train failed: an invariant does not hold: a slot that is given back is held");
  const std::string events = logged(feed, Event::feed_broken);
  CAPTURE(events);
  CHECK(events.find("SubscribeRequested 1 1") != std::string::npos);
  CHECK(events.find("BatchReady 0 0") != std::string::npos);
  CHECK(events.find("BatchSent") > events.find("BatchReady"));
}

TEST_CASE("delivery: a worker gets its ticket once the kernel has the record of it") {
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings);
  const FeedParts& parts = feed.core().parts();
  REQUIRE(feed.eventually([&parts] { return parts.life.state() == FeedState::serving; }));
  VirtualClient worker(feed);
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  worker.send(std::move(subscribe));
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);
  std::size_t tickets = 0;
  std::vector<Record> records;
  const auto look = [&] {
    for (const FeedAction& action : std::exchange(actions, {})) {
      if (const auto* send = std::get_if<Send>(&action)) tickets += send->is_ticket ? 1 : 0;
      if (const auto* write = std::get_if<WriteRecords>(&action)) {
        records.insert(records.end(), write->records.begin(), write->records.end());
      }
    }
  };
  look();
  CHECK(parts.desk.queue().out().size() == 1);
  CHECK(tickets == 0);
  REQUIRE(records.size() == 1);
  REQUIRE(std::holds_alternative<JournalRecord>(records[0]));
  CHECK(std::get<JournalRecord>(records[0]).kind == JournalRecord::Kind::given);
  feed.tell(Written{1, {}});
  feed.core().decide(feed.now(), actions);
  look();
  CHECK(tickets == 1);
}

TEST_CASE("delivery: a worker whose epoch's end waits for a record is refused when that fails") {
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings, 4);
  VirtualClient worker(feed);
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  subscribe.until_epoch = 1;
  REQUIRE(join(worker, std::move(subscribe)));
  const auto only = next_ticket(worker);
  REQUIRE(only);
  worker.send(release_of(*only));
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);  // its record is not written
  feed.tell(Written{0, Error{ErrorCode::io_error, "the disk is full"}});
  const auto told = worker.receive();
  REQUIRE(told);
  REQUIRE(told->as<wire::Refused>() != nullptr);
  CHECK(told->as<wire::Refused>()->code() == static_cast<std::uint16_t>(ErrorCode::io_error));
}

TEST_CASE("delivery: a feed that has ended says, too, that its last record was not written") {
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings, 4);
  feed.tell(Retired{{ErrorCode::disconnected, "the daemon ends"}});
  feed.tell(Written{0, Error{ErrorCode::io_error, "the disk is full"}});
  REQUIRE(feed.eventually([&feed] { return !feed.core().has_work(); }));
  CHECK(logged(feed, Event::feed_failed) == "feed train failed: the disk is full");
  CHECK(feed.log().get(Event::feed_failed) == 1);
}

TEST_CASE("delivery: what a worker is told waits for its record, and a replica's ticket does not") {
  FeedSettings settings = sorted_feed(4);
  settings.journal = "journal";
  VirtualFeed feed(settings);
  const FeedParts& parts = feed.core().parts();
  REQUIRE(feed.eventually([&parts] { return parts.life.state() == FeedState::serving; }));
  VirtualClient worker(feed);
  VirtualClient replica(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  replica.send(subscribe);
  subscribe.mode = wire::Mode::queue;
  worker.send(subscribe);
  std::vector<std::uint64_t> sessions;
  const auto decide = [&] {
    std::vector<FeedAction> actions;
    feed.core().decide(feed.now(), actions);
    for (const FeedAction& action : actions) {
      const auto* send = std::get_if<Send>(&action);
      if (send != nullptr && send->is_ticket) sessions.push_back(send->session.value);
    }
  };
  decide();
  CHECK(parts.desk.last_record() == 1);
  CHECK(sessions == std::vector<std::uint64_t>{2});
  feed.tell(Written{1, {}});
  decide();
  CHECK(sessions == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("delivery: messages to one subscription keep their order, and wait for no other's") {
  const SubscriptionKey worker{SessionId{1}, {1}};
  const SubscriptionKey other{SessionId{1}, {2}};
  const auto named = [](std::uint64_t slot) {
    return SendBatch{SessionId{1}, {}, {nullptr, SlotIndex{static_cast<std::uint32_t>(slot)}}, {}};
  };
  const auto slots_of = [](std::vector<FeedAction> actions) {
    std::vector<std::uint32_t> slots;
    for (const FeedAction& each : actions)
      slots.push_back(std::get<SendBatch>(each).slot.index.value);
    return slots;
  };
  HeldSends sends;
  CHECK(sends.lets_pass(worker, 0));
  CHECK_FALSE(sends.lets_pass(worker, 1));
  sends.hold({worker, 1, named(1)});
  CHECK_FALSE(sends.lets_pass(worker, 0));  // it would overtake
  sends.hold({worker, 0, named(2)});
  CHECK(sends.lets_pass(other, 0));
  sends.hold({other, 2, named(3)});
  CHECK(slots_of(sends.written(1)) == std::vector<std::uint32_t>{1, 2});
  CHECK(sends.lets_pass(worker, 1));
  CHECK_FALSE(sends.lets_pass(other, 0));
  CHECK(sends.stop().size() == 1);
  CHECK(sends.lets_pass(other, 99));
}
