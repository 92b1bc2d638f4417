#include <doctest/doctest.h>

#include <memory>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Servers with so many steps each; server i's data is i + 1.
struct Servers {
  std::vector<std::unique_ptr<FakeDaemon>> daemons;
  std::string list;

  explicit Servers(const std::vector<std::uint64_t>& steps, std::uint32_t world = 1) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      daemons.push_back(std::make_unique<FakeDaemon>(manners(i, steps[i], world)));
      list += (i == 0 ? "" : ",") + daemons.back()->endpoint();
    }
  }
  static ThreadPolicy manners(std::size_t i, std::uint64_t steps, std::uint32_t world) {
    return {.world = world, .steps = steps, .data = i + 1, .serves = true};
  }
};

/// Which server's batch, by its data, and its index there.
using Batches = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

struct Run {
  Batches batches;
  std::vector<bw_position> positions;  ///< After each batch.
};

Run one_epoch(const SubscriptionHandle& subscription) {
  Run run;
  while (true) {
    bw_batch* raw = nullptr;
    const bw_status status = bw_next(subscription.get(), kLong, &raw, nullptr);
    if (status == BW_EPOCH_END) return run;
    REQUIRE_MESSAGE(status == BW_OK, bw_error_message());
    const BatchHandle batch(raw);
    const bw_batch_header& header = *bw_batch_get_header(raw);
    run.batches.emplace_back(header.fingerprint.data, header.index);
    REQUIRE(bw_batch_position(raw, &run.positions.emplace_back()) == BW_OK);
  }
}

}  // namespace

TEST_CASE("client: several servers take turns until each has ended") {
  const Servers servers({2, 4, 1});
  const auto connection = connect(servers.list);
  REQUIRE(bw_feed_count(connection.get()) == 1);
  CHECK(bw_feed_at(connection.get(), 0)->sequences == 21);
  bw_subscribe_options options = train();
  options.epochs = 2;
  const auto subscription = subscribe(connection, options);
  CHECK(bw_subscription_grant(subscription.get())->steps == 7);
  CHECK(bw_subscription_grant(subscription.get())->window == 12);
  const Batches order = {{1, 0}, {2, 0}, {3, 0}, {1, 1}, {2, 1}, {2, 2}, {2, 3}};
  for (const std::uint64_t epoch : {0U, 1U}) {
    const Run run = one_epoch(subscription);
    CHECK(run.batches == order);
    CHECK(run.positions.back().epoch == epoch);
    CHECK(run.positions.back().step == 7);
  }
  CHECK(next_status(subscription) == BW_END);
}

TEST_CASE("client: from every merged position the rest comes, and nothing else") {
  const Servers servers({3, 2, 5, 1}, 2);
  const auto connection = connect(servers.list);
  const Run whole = one_epoch(subscribe(connection));
  REQUIRE(whole.batches.size() == 22);
  for (std::size_t taken = 1; taken <= whole.batches.size(); ++taken) {
    const bw_position& position = whole.positions[taken - 1];
    CHECK(position.step == taken / 2);
    bw_subscribe_options options = train();
    options.step = position.step;
    options.fingerprint = &position.fingerprint;
    const Run rest = one_epoch(subscribe(connection, options));
    const auto from = static_cast<std::ptrdiff_t>(2 * position.step);
    CHECK(rest.batches == Batches(whole.batches.begin() + from, whole.batches.end()));
  }
}

TEST_CASE("client: servers in another order, or with other data, are another plan") {
  const Servers servers({2, 2});
  const auto connection = connect(servers.list);
  const auto subscription = subscribe(connection);
  bw_subscribe_options options = train();
  options.fingerprint = &bw_subscription_grant(subscription.get())->fingerprint;
  CHECK(subscribe(connection, options) != nullptr);
  const auto turned =
      connect(servers.daemons[1]->endpoint() + "," + servers.daemons[0]->endpoint());
  for (const std::uint64_t step : {0U, 1U}) {
    options.step = step;
    bw_subscription* raw = nullptr;
    CHECK(bw_subscribe(turned.get(), &options, &raw) == BW_FINGERPRINT_MISMATCH);
    CHECK(error_says("data changed"));
  }
  options.fingerprint = nullptr;
  options.step = 5;
  bw_subscription* raw = nullptr;
  CHECK(bw_subscribe(turned.get(), &options, &raw) == BW_INVALID_ARGUMENT);
  CHECK(error_says("the servers have 4 in that epoch"));
}

TEST_CASE("client: feeds that do not fit together are refused, with both servers named") {
  FakeDaemon one;
  FakeDaemon two({.world = 2});
  FakeDaemon three({.field = "frames"});
  const bw_subscribe_options options = train();
  for (const FakeDaemon* other : {&two, &three}) {
    const auto connection = connect(one.endpoint() + "," + other->endpoint());
    CHECK(bw_feed_count(connection.get()) == 0);
    bw_subscription* raw = nullptr;
    CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_SCHEMA_MISMATCH);
    CHECK(error_says("between " + one.endpoint() + " and " + other->endpoint()));
    CHECK(error_says(other == &two ? "a world of 1 and one of 2" : "field \"features\" differs"));
  }
}

TEST_CASE("client: a server that restarts is waited for, and the order stays") {
  const Servers servers({4, 4});
  const auto connection = connect(servers.list);
  bw_subscribe_options options = train();
  options.window = 1;
  const auto subscription = subscribe(connection, options);
  for (int i = 0; i < 3; ++i) next_batch(subscription);
  servers.daemons[1]->die();
  CHECK(next_status(subscription, 50) == BW_TIMED_OUT);
  CHECK(error_says("server " + servers.daemons[1]->endpoint()));
  servers.daemons[1]->rise(Servers::manners(1, 4, 1));
  CHECK(one_epoch(subscription).batches == Batches{{2, 1}, {1, 2}, {2, 2}, {1, 3}, {2, 3}});
}

TEST_CASE("client: a server that is gone for good ends the whole, and is named") {
  const Servers servers({4, 4});
  bw_connect_options connecting = BW_CONNECT_OPTIONS_INIT;
  connecting.reconnect_ms = 0;
  const auto connection = connect(servers.list, connecting);
  const auto subscription = subscribe(connection);
  next_batch(subscription);
  servers.daemons[1]->die();
  for (int again = 0; again < 2; ++again) {
    CHECK(next_status(subscription) == BW_DISCONNECTED);
    CHECK(error_says("server " + servers.daemons[1]->endpoint()));
  }
}

TEST_CASE("client: rehearsals of all servers come before the first batch of any") {
  FakeDaemon one({.steps = 1});
  FakeDaemon two({.steps = 1, .data = 2});
  const auto connection = connect(one.endpoint() + "," + two.endpoint());
  bw_subscribe_options options = train();
  options.worst_first = 1;
  const auto subscription = subscribe(connection, options);
  for (FakeDaemon* daemon : {&one, &two}) {
    wire::DeliveryT ticket = daemon->lay_out(0, 0, 0);
    ticket.subscription = 1;
    ticket.rehearsal = true;
    daemon->deliver(std::move(ticket));
    daemon->deliver(1, 0, 0, 0);
    daemon->end_epoch(1, 0);
  }
  std::vector<std::uint32_t> rehearsals;
  for (int i = 0; i < 4; ++i) {
    rehearsals.push_back(bw_batch_get_header(next_batch(subscription).get())->rehearsal);
  }
  CHECK(rehearsals == std::vector<std::uint32_t>{1, 1, 0, 0});
  CHECK(next_status(subscription) == BW_EPOCH_END);
}

TEST_CASE("client: servers whose data grows have a position of all from the epoch's first batch") {
  std::vector<std::unique_ptr<FakeDaemon>> daemons;
  for (const std::uint64_t data : {1U, 2U}) {
    daemons.push_back(std::make_unique<FakeDaemon>(
        ThreadPolicy{.steps = 1, .data = data, .serves = true, .grows_at_epoch = 1}));
  }
  const auto connection = connect(daemons[0]->endpoint() + "," + daemons[1]->endpoint());
  const auto subscription = subscribe(connection);
  const Run first = one_epoch(subscription);
  const Run second = one_epoch(subscription);
  CHECK(second.batches == Batches{{101, 0}, {102, 0}, {101, 1}, {102, 1}});
  CHECK(second.positions[0].fingerprint.data == second.positions[3].fingerprint.data);
  CHECK(second.positions[0].fingerprint.data != first.positions[1].fingerprint.data);
  std::uint64_t steps = 0;
  REQUIRE(bw_subscription_steps(subscription.get(), nullptr, &steps) == BW_OK);
  CHECK(steps >= 2);
}
