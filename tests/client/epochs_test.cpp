#include <doctest/doctest.h>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bw_subscribe_options for_epochs(std::uint64_t count) {
  bw_subscribe_options options = train();
  options.epochs = count;
  return options;
}

}  // namespace

TEST_CASE("client: an epoch that begins with other data has its own fingerprint and steps") {
  const ThreadPolicy manners{.steps = 2, .serves = true, .grows_at_epoch = 1};
  FakeDaemon daemon(manners);
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, for_epochs(2));
  std::uint64_t epoch = 9;
  std::uint64_t steps = 0;
  REQUIRE(bw_subscription_steps(subscription.get(), &epoch, &steps) == BW_OK);
  CHECK(epoch == 0);
  CHECK(steps == 2);
  next_batch(subscription);
  auto last = next_batch(subscription);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  const auto first = next_batch(subscription);
  bw_position position{};
  REQUIRE(bw_batch_position(last.get(), &position) == BW_OK);
  CHECK(position.fingerprint.data == 1);
  CHECK(position.step == 2);
  REQUIRE(bw_batch_position(first.get(), &position) == BW_OK);
  CHECK(position.fingerprint.data == 101);
  CHECK(position_of(subscription).fingerprint.data == 101);
  REQUIRE(bw_subscription_steps(subscription.get(), &epoch, &steps) == BW_OK);
  CHECK(epoch == 1);
  CHECK(steps == 3);
  daemon.die();
  daemon.rise(manners);
  const Seen seen = run_to_end(subscription, [] {});
  CHECK(seen.last == BW_END);
  CHECK(seen.batches == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}, {1, 2}});
}

TEST_CASE("client: between two epochs the end of the first comes again, and is passed over") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, for_epochs(2));
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 1, 1);
  daemon.end_epoch(1, 0);
  next_batch(subscription);
  next_batch(subscription);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  daemon.die();
  daemon.rise({.serves = true, .grows_at_epoch = 1});
  const Seen seen = run_to_end(subscription, [] {});
  CHECK(seen.batches ==
        std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 0}, {1, 1}, {1, 2}});
  CHECK(seen.ended == std::vector<std::uint64_t>{1});
  CHECK(seen.last == BW_END);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.subscribed.back().epoch == 0 && heard.subscribed.back().step == 2 &&
           heard.subscribed.back().epochs == 2;
  }));
}

TEST_CASE("client: the end of all that was asked for outlives the daemon") {
  FakeDaemon daemon({.steps = 1, .serves = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection, for_epochs(1));
  const auto batch = next_batch(subscription);
  const auto other = subscribe(connection, for_epochs(1));  // after what the first was told
  daemon.die();
  CHECK(next_status(subscription) == BW_EPOCH_END);
  CHECK(next_status(subscription) == BW_END);
}

TEST_CASE("client: rehearsals come first, have no place, and are not repeated") {
  const auto rehearse = [](FakeDaemon& daemon, std::uint64_t index) {
    wire::DeliveryT ticket = daemon.lay_out(0, index, index);
    ticket.subscription = 1;
    ticket.rehearsal = true;
    daemon.deliver(std::move(ticket));
  };
  FakeDaemon daemon({.steps = 4});
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.worst_first = 2;
  const auto subscription = subscribe(connection, options);
  rehearse(daemon, 3);
  const auto worst = next_batch(subscription);
  CHECK(bw_batch_get_header(worst.get())->rehearsal == 1);
  bw_position position{};
  REQUIRE(bw_batch_position(worst.get(), &position) == BW_OK);
  CHECK(position.step == 0);
  daemon.die();
  daemon.rise({.steps = 4});
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.subscribed[1].worst_first == 2;
  }));
  rehearse(daemon, 3);
  rehearse(daemon, 1);
  daemon.deliver(1, 0, 0, 0);
  CHECK(bw_batch_get_header(next_batch(subscription).get())->index == 1);
  CHECK(bw_batch_get_header(next_batch(subscription).get())->rehearsal == 0);
  rehearse(daemon, 2);
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("a rehearsal came where batch 1 of epoch 0 was due"));
}

TEST_CASE("client: a long wait asks the daemon what for, once, and says it") {
  FakeDaemon daemon({.explains = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  CHECK(next_status(subscription, 200) == BW_TIMED_OUT);
  CHECK(error_says("it waits for a slot: all are held by trainer 7"));
  CHECK(next_status(subscription, 20) == BW_TIMED_OUT);  // too short for a question
  CHECK(daemon.hears([](const auto& heard) { return heard.asked == 1; }));
}

TEST_CASE("client: a program that waits says so, to a daemon that wants to know") {
  for (const Abilities abilities : {Abilities(), kAbilities}) {
    FakeDaemon daemon({.abilities = abilities});
    const bool able = abilities == kAbilities;
    CAPTURE(able);
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    CHECK(next_status(subscription, 20) == BW_TIMED_OUT);  // with nothing in hand
    daemon.deliver(1, 0, 0, 0);
    auto batch = next_batch(subscription);
    batch.reset();
    const auto releases = [able](const auto& heard) {
      return heard.releases == 1 && (heard.waits > 0) == able;
    };
    CHECK(hears_in_a_wait(daemon, subscription, releases));
  }
}

TEST_CASE("client: a wait too short to be told while it lasts is told with the next release") {
  FakeDaemon daemon({.steps = 1000, .serves = true, .abilities = kAbilities});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  const auto told = [](const auto& heard) { return heard.waited_us > 0; };
  // Sooner or later a batch is waited for by some microseconds.
  for (int i = 0; i < 1000 && !daemon.has_heard(told); ++i) next_batch(subscription).reset();
  CHECK(daemon.hears(told));
}

TEST_CASE("client: a program that waits says so to the next daemon, too") {
  FakeDaemon daemon({.abilities = kAbilities});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) { return heard.waits == 1; }));
  daemon.die();
  daemon.rise({.abilities = kAbilities});
  CHECK(hears_in_a_wait(daemon, subscription, [](const auto& heard) { return heard.waits == 2; }));
}
