#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/delivery/core/virtual_feed.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("delivery: a window is granted up to half of the slots") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 6;
  VirtualFeed feed(settings);
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = UINT32_MAX;
  client.send(std::move(subscribe));
  const auto answer = client.receive();
  REQUIRE(answer->as<wire::Subscribed>() != nullptr);
  CHECK(answer->as<wire::Subscribed>()->window() == 3);
}

TEST_CASE("delivery: a job without a slot more than ranks here is refused, and not left waiting") {
  FeedSettings settings = sorted_feed(4, 4);
  settings.slots = 3;
  VirtualFeed feed(settings);
  const auto rank = [](std::uint32_t number, std::uint32_t of, std::uint32_t here = 0) {
    auto subscribe = subscribe_to_train();
    subscribe.ranks_here = here;
    subscribe.mode = wire::Mode::sharded;
    subscribe.rank = number;
    subscribe.ranks = of;
    return subscribe;
  };
  VirtualClient first(feed);
  VirtualClient second(feed);
  VirtualClient third(feed);
  REQUIRE(join(first, rank(0, 4)));
  REQUIRE(join(second, rank(1, 4)));
  third.send(rank(2, 4));
  CHECK(refusal(third, ErrorCode::does_not_fit) ==
        "rank 2 would be one of 3 ranks here, each of which holds a batch while it waits for the "
        "others, and feed train has 3 slots; set slots to 4 or more");
  // A rank that is here already, say of a job that is killed and started again, takes no slot more.
  third.send(rank(1, 4));
  CHECK(read_until<wire::Subscribed>(third));
  // A job that says how many there will be is refused at once; and so is another beside it.
  VirtualClient other(feed);
  other.send(rank(0, 4, 4));
  CHECK(refusal(other, ErrorCode::does_not_fit).ends_with("set slots to 8 or more"));
  other.send(rank(0, 4, 5));
  CHECK(refusal(other, ErrorCode::invalid_argument) == "5 ranks on this host of 4 in all");
}

TEST_CASE("delivery: what looks on at a job without a slot of its own is refused") {
  FeedSettings settings = sorted_feed(4, 2);
  settings.slots = 3;
  VirtualFeed feed(settings);
  auto rank = subscribe_to_train();
  rank.mode = wire::Mode::sharded;
  rank.ranks = 2;
  rank.ranks_here = 2;
  auto onlooker = std::make_unique<VirtualClient>(feed);
  REQUIRE(join(*onlooker, subscribe_to_train()));
  VirtualClient first(feed);
  first.send(rank);
  CHECK(refusal(first, ErrorCode::does_not_fit) ==
        "rank 0 would be one of 2 ranks and 1 other client here, each of which holds a batch while "
        "it waits for the others, and feed train has 3 slots; set slots to 4 or more");
  onlooker->die();
  first.send(rank);
  REQUIRE(read_until<wire::Subscribed>(first));
  VirtualClient late(feed);
  late.send(subscribe_to_train());
  CHECK(refusal(late, ErrorCode::does_not_fit) ==
        "feed train has 3 slots, and the job that trains on it needs all of them; set slots to 4 "
        "or more, or have the batches sent as messages (inline)");
  VirtualClient messages(feed);
  messages.take_messages();
  messages.send(subscribe_to_train());
  CHECK(read_until<wire::Subscribed>(messages));
}

TEST_CASE("delivery: clients that stopped reading leave slots for the others") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 6;
  VirtualFeed feed(settings);
  std::vector<std::unique_ptr<VirtualClient>> stalled;
  for (const std::uint64_t step : std::array<std::uint64_t, 2>{0, 4}) {
    stalled.push_back(std::make_unique<VirtualClient>(feed));
    auto subscribe = subscribe_to_train();
    subscribe.step = step;
    stalled.back()->send(std::move(subscribe));
  }
  // All that the two may hold: a slot stays free for a newcomer, and one that goes round.
  const SlotCache& cache = feed.core().parts().scheduler.cache();
  CHECK(feed.eventually([&cache] { return cache.held() == 4; }));
  VirtualClient reader(feed);
  reader.send(subscribe_to_train());
  CHECK(indices_to_the_end(reader) == numbers(0, 10));
}

TEST_CASE("delivery: what is due to two that hold all they may is not assembled in turns") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 8;
  VirtualFeed feed(settings);
  VirtualClient full(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 4;
  REQUIRE(join(full, subscribe));
  for (int i = 0; i < 4; ++i) REQUIRE(read_until<wire::Delivery>(full));
  // The other is given two: one slot is kept for a newcomer, one goes round; they hold what is due.
  VirtualClient other(feed);
  subscribe.epoch = 1;
  REQUIRE(join(other, subscribe));
  for (int i = 0; i < 2; ++i) REQUIRE(read_until<wire::Delivery>(other));
  const auto ask = [&other] {
    wire::AskT question;
    question.subscription = 1;
    other.send(std::move(question));
    return read_until<wire::Waiting>(other).has_value();
  };
  for (int i = 0; i < 200; ++i) REQUIRE(ask());
  CHECK(feed.count(FeedCounter::batches_assembled) <= 8 + 7);
}

TEST_CASE("delivery: an onlooker holds one batch, and more once it says that it waits") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  client.look_on(subscribe_to_train());
  REQUIRE(read_until<wire::Delivery>(client));
  VirtualClient other(feed);
  REQUIRE(join(other, subscribe_to_train()));
  CHECK(indices_to_the_end(other) == numbers(0, 10));
  CHECK(client.silent());
  client.say_waiting(1, 1);
  CHECK(next_ticket(client)->index == 1);
}

TEST_CASE("delivery: the last slot is for a loop that waits with a batch in hand") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  VirtualFeed feed(settings);
  VirtualClient loop(feed);
  REQUIRE(join(loop, subscribe_to_train()));
  auto held = next_ticket(loop);
  for (std::uint64_t i = 1; i < 10; ++i) {
    REQUIRE(held);
    loop.say_waiting(1, 1);
    const auto next = next_ticket(loop);
    REQUIRE(next);
    CHECK(next->index == i);
    loop.send(release_of(*held));
    held = next;
  }
}

TEST_CASE("delivery: a client that waits for others is told which, and so is the log") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  VirtualFeed feed(settings);
  VirtualClient first(feed);
  REQUIRE(join(first, subscribe_to_train()));
  REQUIRE(next_ticket(first));
  VirtualClient second(feed);
  auto subscribe = subscribe_to_train();
  subscribe.epoch = 1;
  REQUIRE(join(second, std::move(subscribe)));
  CHECK(feed.eventually([&feed] { return feed.log().get(Event::long_wait) != 0; }));
  wire::AskT question;
  question.subscription = 1;
  second.send(std::move(question));
  const auto answer = read_until<wire::Waiting>(second);
  REQUIRE(answer);
  const std::string reason = answer->as<wire::Waiting>()->reason()->str();
  CAPTURE(reason);
  CHECK(reason.find("raw (pid 0) holds 1 and has released none for ") != std::string::npos);
  CHECK(reason.ends_with("; with 3 slots all that are here could go on at once"));
}

TEST_CASE("delivery: the log names a client that waits, and none that is at work with its batch") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  VirtualFeed feed(settings);
  const auto arrive = [](VirtualClient& client, std::uint64_t epoch) {
    auto subscribe = subscribe_to_train();
    subscribe.epoch = epoch;
    return join(client, std::move(subscribe));
  };
  VirtualClient holds(feed, "holds", kAbilities);
  REQUIRE(arrive(holds, 0));
  REQUIRE(next_ticket(holds));
  VirtualClient works(feed, "works", kAbilities);
  REQUIRE(arrive(works, 0));
  REQUIRE(next_ticket(works));
  // The third one's batch would take the slot of either.
  VirtualClient waits(feed, "waits", kAbilities);
  REQUIRE(arrive(waits, 1));
  waits.say_waiting(1, 0);
  std::string told;
  CHECK(feed.eventually([&] {
    for (const LoggedEvent& each : feed.log().latest()) {
      if (each.event == Event::long_wait) told += each.text + "\n";
    }
    return !told.empty();
  }));
  CHECK(told.find("feed train: waits (pid 0) has waited 1 s for a slot") == 0);
  CHECK(told.find("train: holds") == std::string::npos);
  CHECK(told.find("train: works") == std::string::npos);
}

TEST_CASE("delivery: slots ahead are those with batches that somebody will get") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 12;
  VirtualFeed feed(settings);
  const FeedParts& parts = feed.core().parts();
  const auto ahead = [&parts] { return parts.scheduler.slots_ahead(parts.cohorts()); };
  CHECK(feed.eventually([&] { return ahead() == 10; }));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.step = 7;
  REQUIRE(join(client, std::move(subscribe)));
  CHECK(indices_to_the_end(client) == numbers(7, 10));
  CHECK(ahead() == 0);  // all ten are there, and no client will get any
}

TEST_CASE("delivery: no client runs further ahead of the slowest than max_lead") {
  FeedSettings settings = sorted_feed(4);
  settings.max_lead = 3;
  VirtualFeed feed(settings);
  VirtualClient slow(feed);
  VirtualClient fast(feed);
  auto one = subscribe_to_train();
  one.window = 1;
  REQUIRE(join(slow, std::move(one)));
  const auto first = next_ticket(slow);
  REQUIRE(first);
  REQUIRE(join(fast, subscribe_to_train()));
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto ticket = next_ticket(fast);
    REQUIRE(ticket);
    CHECK(ticket->index == i);
    fast.send(release_of(*ticket));
  }
  wire::AskT question;
  question.subscription = 1;
  fast.send(std::move(question));
  const auto answer = fast.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Waiting>() != nullptr);
  CHECK(answer->as<wire::Waiting>()->reason()->str().find("the slowest client") == 0);
  slow.send(release_of(*first));
  REQUIRE(next_ticket(slow));
  const auto ticket = next_ticket(fast);
  REQUIRE(ticket);
  CHECK(ticket->index == 4);
}

TEST_CASE("delivery: a client that waits is told for what") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  auto subscribe = subscribe_to_train();
  subscribe.window = 2;
  REQUIRE(join(client, std::move(subscribe)));
  REQUIRE(next_ticket(client));
  REQUIRE(next_ticket(client));
  wire::AskT question;
  question.subscription = 1;
  client.send(std::move(question));
  const auto answer = client.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Waiting>() != nullptr);
  CHECK(answer->as<wire::Waiting>()->reason()->str() ==
        "this client's releases: it holds 2 batches, as many as its window allows");
}
