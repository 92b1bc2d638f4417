#include <doctest/doctest.h>

#include <algorithm>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bw_subscribe_options queue(std::uint64_t epochs = 0) {
  bw_subscribe_options options = train();
  options.mode = BW_QUEUE;
  options.epochs = epochs;
  return options;
}

void deliver_as(FakeDaemon& daemon, std::uint64_t index, std::uint64_t lease) {
  wire::DeliveryT ticket = daemon.lay_out(0, index, index);
  ticket.subscription = 1;
  ticket.lease = lease;
  daemon.deliver(std::move(ticket));
}

}  // namespace

TEST_CASE("client: a queue's batches come in any order") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  for (const std::uint64_t index : {5U, 2U, 7U}) {
    daemon.deliver(1, 0, index, index);
    CHECK(bw_batch_get_header(next_batch(subscription).get())->index == index);
  }
  daemon.end_epoch(1, 0);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 3; }));
}

TEST_CASE("client: it names its abilities, and goes on with a daemon that has none or others") {
  for (const Abilities named : {Abilities(), kAbilities, Abilities(~std::uint64_t{0})}) {
    FakeDaemon daemon({.abilities = named});
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection, queue());
    deliver_as(daemon, 0, 7);
    next_batch(subscription);
    CHECK(daemon.hears([](const auto& heard) {
      return heard.released.size() == 1 && heard.hellos[0].abilities == kAbilities.bits();
    }));
  }
}

TEST_CASE("client: a batch that is given back undone is told to a daemon that can be told") {
  FakeDaemon daemon({.abilities = kAbilities});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  for (std::uint64_t i = 0; i < 3; ++i) deliver_as(daemon, i, 50 + i);
  CHECK(bw_return(next_batch(subscription).release()) == BW_OK);
  auto done = next_batch(subscription);
  CHECK(bw_batch_done(done.get()) == BW_OK);
  CHECK(bw_return(done.release()) == BW_OK);  // it was done, and stays so
  next_batch(subscription).reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.returned == std::vector<std::uint64_t>{50} &&
           heard.released == std::vector<std::uint64_t>{51, 51, 52};
  }));
  CHECK(bw_return(nullptr) == BW_OK);
}

TEST_CASE("client: a batch that is given back undone stays out with a daemon that knows no word") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  auto subscription = subscribe(connection, queue());
  deliver_as(daemon, 0, 50);
  deliver_as(daemon, 1, 51);
  CHECK(bw_return(next_batch(subscription).release()) == BW_OK);
  next_batch(subscription).reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.released == std::vector<std::uint64_t>{51} && heard.returned.empty();
  }));
  SUBCASE("until its subscription ends") {
    subscription.reset();
    CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
  }
  SUBCASE("and is not claimed from the next one") {
    daemon.die();
    daemon.rise({.steps = 9, .abilities = kAbilities});
    CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) {
      return heard.subscribed.size() == 2 && heard.subscribed[1].held.empty() &&
             heard.subscribed[1].released == std::vector<std::uint64_t>{51};
    }));
  }
  CHECK(daemon.has_heard([](const auto& heard) { return heard.returned.empty(); }));
}

TEST_CASE("client: outside of a queue a batch that is given back undone is released") {
  FakeDaemon daemon({.abilities = kAbilities});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(subscription);
  CHECK(bw_batch_get_header(batch.get())->attempt == 0);
  CHECK(bw_return(batch.release()) == BW_OK);
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 1; }));
}

TEST_CASE("client: a batch says how often it was begun") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
  ticket.subscription = 1;
  ticket.lease = 7;
  ticket.attempt = 3;
  daemon.deliver(std::move(ticket));
  CHECK(bw_batch_get_header(next_batch(subscription).get())->attempt == 3);
}

TEST_CASE("client: a queue's epochs are counted by the queue, with an older daemon as well") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = queue();
  options.until_epoch = 1;
  const auto subscription = subscribe(connection, options);
  CHECK(daemon.hears([](const auto& heard) { return heard.subscribed[0].until_epoch == 1; }));
  daemon.end_epoch(1, 0);  // it does not say that it is the last
  CHECK(next_status(subscription) == BW_EPOCH_END);
  CHECK(next_status(subscription) == BW_END);
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
  options.epoch = 1;  // the fake daemon is where it is asked for
  const auto late = subscribe(connection, options);
  CHECK(next_status(late) == BW_END);
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 2; }));
  bw_subscription* raw = nullptr;
  options.mode = BW_REPLICA;
  CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(error_says("until_epoch goes with BW_QUEUE"));
}

TEST_CASE("client: a queue's lease that comes twice is an error, held or released") {
  for (const bool held : {true, false}) {
    FakeDaemon daemon;
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection, queue());
    deliver_as(daemon, 0, 77);
    auto batch = next_batch(subscription);
    if (!held) batch.reset();
    deliver_as(daemon, 1, 77);
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
    CHECK(error_says("lease 77 was handed out before"));
  }
}

TEST_CASE("client: a queue is told what is held and what was released before the daemon died") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  for (std::uint64_t i = 0; i < 4; ++i) deliver_as(daemon, i, 50 + i);
  auto first = next_batch(subscription);
  next_batch(subscription);
  auto third = next_batch(subscription);  // the fourth is not taken
  CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 1; }));
  daemon.die();
  CHECK(next_status(subscription, 0) == BW_TIMED_OUT);
  third.reset();  // no daemon is there to hear it
  daemon.rise({.steps = 9});
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) {
    return heard.subscribed.size() == 2 &&
           heard.subscribed[1].held == std::vector<std::uint64_t>{50} &&
           heard.subscribed[1].released == std::vector<std::uint64_t>{51, 52};
  }));
  first.reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.released == std::vector<std::uint64_t>{51, 50};
  }));
  deliver_as(daemon, 3, 60);
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 3);
}

TEST_CASE("client: what a daemon has noted is not claimed again from the next one") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  deliver_as(daemon, 0, 50);
  next_batch(subscription);
  for (std::size_t restart = 2; restart < 4; ++restart) {
    daemon.die();
    daemon.rise({.steps = 9});
    CHECK(hears_in_a_wait(daemon, subscription, [restart](const auto& heard) {
      return heard.subscribed.size() == restart;
    }));
    // Its answer is in when a batch has come.
    deliver_as(daemon, restart, 60 + restart);
    next_batch(subscription);
    CHECK(daemon.hears([restart](const auto& heard) {
      return heard.subscribed.back().released ==
             std::vector<std::uint64_t>{restart == 2 ? 50U : 62U};
    }));
  }
}

TEST_CASE("client: so many releases are remembered and no more") {
  constexpr std::uint64_t kMany = 1100;
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  for (std::uint64_t i = 0; i < kMany; ++i) {
    deliver_as(daemon, 0, 10 + i);
    next_batch(subscription);
  }
  daemon.die();
  daemon.rise({.steps = 9});
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.subscribed[1].released.size() == 1024 &&
           heard.subscribed[1].released.back() == 10 + kMany - 1;
  }));
}

TEST_CASE("client: a queue's releases are told even when subscription and connection are closed") {
  FakeDaemon daemon;
  auto connection = connect(daemon.endpoint());
  auto subscription = subscribe(connection, queue());
  deliver_as(daemon, 0, 50);
  deliver_as(daemon, 1, 51);
  auto one = next_batch(subscription);
  auto two = next_batch(subscription);
  subscription.reset();
  one.reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.released == std::vector<std::uint64_t>{50} && heard.unsubscribed.empty();
  }));
  connection.reset();
  two.reset();
  CHECK(daemon.hears([](const auto& heard) {
    return heard.released == std::vector<std::uint64_t>{50, 51} && heard.byes == 1;
  }));
}

TEST_CASE("client: epochs that others ended while the daemon was away are ended here as well") {
  FakeDaemon daemon({.steps = 9});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue(2));
  daemon.die();
  daemon.rise({.answers_subscribe = false, .steps = 9});
  REQUIRE(hears_in_a_wait(daemon, subscription,
                          [](const auto& heard) { return heard.subscribed.size() == 2; }));
  wire::SubscribedT answer;
  answer.subscription = 1;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(100, 2, 3);  // it has grown
  answer.epoch = 2;
  answer.steps = 9;
  answer.world = 1;
  answer.batches_per_step = 1;
  answer.window = 4;
  answer.arena = 1;
  daemon.send(std::move(answer));
  CHECK(next_status(subscription) == BW_EPOCH_END);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  CHECK(next_status(subscription) == BW_END);  // two epochs were asked for
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
}

TEST_CASE("client: a queue's next daemon may be in an epoch that has ended here, of other data") {
  const ThreadPolicy manners{.steps = 1, .grows_at_epoch = 1};
  FakeDaemon daemon(manners);
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  daemon.end_epoch(1, 0);
  wire::EpochBeginT begin;
  begin.subscription = 1;
  begin.epoch = 1;
  begin.steps = 2;
  begin.fingerprint = std::make_unique<wire::Fingerprint>(101, 2, 3);
  daemon.send(std::move(begin));
  daemon.deliver(1, 1, 0, 0);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  next_batch(subscription).reset();
  // Its release of epoch 0 was not heard: the queue is there still, until it is told again.
  daemon.die();
  daemon.rise(manners);
  REQUIRE(hears_in_a_wait(daemon, subscription,
                          [](const auto& heard) { return heard.subscribed.size() == 2; }));
  daemon.deliver(1, 1, 1, 1);
  const auto batch = next_batch(subscription);
  REQUIRE(batch);
  CHECK(bw_batch_get_header(batch.get())->epoch == 1);
}

TEST_CASE("client: a queue's epoch that was begun and not given may come back of other data") {
  FakeDaemon daemon({.steps = 1});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  daemon.end_epoch(1, 0);
  wire::EpochBeginT begin;
  begin.subscription = 1;
  begin.epoch = 1;
  begin.steps = 1;
  begin.fingerprint = std::make_unique<wire::Fingerprint>(101, 2, 3);
  daemon.send(std::move(begin));
  CHECK(next_status(subscription) == BW_EPOCH_END);
  daemon.flush();
  CHECK(next_status(subscription, 20) == BW_TIMED_OUT);
  daemon.die();
  daemon.rise({.answers_subscribe = false, .steps = 1, .data = 102});
  REQUIRE(hears_in_a_wait(daemon, subscription,
                          [](const auto& heard) { return heard.subscribed.size() == 2; }));
  wire::SubscribedT answer;
  answer.subscription = 1;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(102, 2, 3);
  answer.epoch = 1;
  answer.steps = 1;
  answer.world = 1;
  answer.batches_per_step = 1;
  answer.window = 4;
  answer.arena = 1;
  daemon.send(std::move(answer));
  daemon.deliver(1, 1, 0, 0);
  CHECK(next_batch(subscription));
}

TEST_CASE("client: a queue's epoch of which a batch was had keeps its data") {
  FakeDaemon daemon({.steps = 5});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, queue());
  daemon.deliver(1, 0, 0, 0);
  CHECK(next_batch(subscription));
  daemon.die();
  daemon.rise({.steps = 5, .data = 9, .compares = false});
  CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
  CHECK(error_says("data changed"));
}

TEST_CASE("client: a queue has neither rehearsals nor several servers") {
  FakeDaemon daemon;
  FakeDaemon other;
  bw_subscribe_options options = queue();
  bw_subscription* raw = nullptr;
  const auto several = connect(daemon.endpoint() + "," + other.endpoint());
  CHECK(bw_subscribe(several.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(error_says("BW_QUEUE is for one endpoint"));
  const auto one = connect(daemon.endpoint());
  options.worst_first = 1;
  CHECK(bw_subscribe(one.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  options.mode = BW_REPLICA;
  options.worst_first = 17;
  CHECK(bw_subscribe(one.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(error_says("worst_first is 17; 0 to 16 is allowed"));
}
