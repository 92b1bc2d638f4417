#include <doctest/doctest.h>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("client: a batch is read where it lies") {
  FakeDaemon daemon({.world = 2});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  const auto batch = next_batch(subscription);
  const bw_batch_header& header = *bw_batch_get_header(batch.get());
  CHECK(std::string(header.feed) == "train");
  CHECK(header.sequences == 2);
  CHECK(header.batch_length == 3);
  CHECK(header.frames == 5);
  CHECK(header.step_frames == 10);
  CHECK(header.loss_weight == doctest::Approx(1.0));
  CHECK(header.lengths[1] == 2);
  CHECK(header.ordinals[1] == 1);
  CHECK(header.starts == nullptr);
  CHECK(header.fingerprint.settings == 2);
  std::size_t size = 0;
  CHECK(std::string(bw_batch_key(batch.get(), 1, &size)) == "another");
  CHECK(size == 7);
  CHECK(bw_batch_key(batch.get(), 2, &size) == nullptr);
}

TEST_CASE("client: tensors are found by place and name, aligned, with their values") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  const auto batch = next_batch(subscription);
  const bw_tensor& features = *bw_batch_tensor(batch.get(), 0);
  CHECK(bw_batch_tensor_named(batch.get(), "features") == &features);
  CHECK(bw_batch_tensor(batch.get(), 2) == nullptr);
  CHECK(bw_batch_tensor_named(batch.get(), "none") == nullptr);
  REQUIRE(features.ndim == 3);
  CHECK(features.shape[1] == 3);
  CHECK(features.bytes == 48);
  CHECK(reinterpret_cast<std::uintptr_t>(features.data) % 64 == 0);
  CHECK(static_cast<const float*>(features.data)[9] == FakeDaemon::value(0, 1, 1, 1));
  CHECK(features.row_lengths[1] == 2);
  const bw_tensor& label = *bw_batch_tensor_named(batch.get(), "label");
  CHECK(label.kind == BW_SCALAR);
  CHECK(label.row_lengths == nullptr);
  CHECK(static_cast<const std::int32_t*>(label.data)[1] == 1);
}

TEST_CASE("client: epochs end after their last batch, and counted epochs come to an end") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  for (const std::uint64_t epoch : {0U, 1U}) {
    daemon.deliver(1, epoch, 0, 0);
    daemon.deliver(1, epoch, 1, 1);
    daemon.end_epoch(1, epoch, epoch == 1);
  }
  for (const std::uint64_t epoch : {0U, 1U}) {
    next_batch(subscription);
    next_batch(subscription);
    bw_batch* batch = nullptr;
    std::uint64_t ended = 99;
    CHECK(bw_next(subscription.get(), kLong, &batch, &ended) == BW_EPOCH_END);
    CHECK(ended == epoch);
  }
  CHECK(next_status(subscription) == BW_END);
  CHECK(next_status(subscription) == BW_END);
}

TEST_CASE("client: a position names the first step that is not complete") {
  FakeDaemon daemon({.world = 2});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 0, 1);
  const auto first = next_batch(subscription);
  bw_position position{};
  REQUIRE(bw_subscription_position(subscription.get(), &position) == BW_OK);
  CHECK(position.step == 0);
  REQUIRE(bw_batch_position(first.get(), &position) == BW_OK);
  CHECK(position.step == 0);
  const auto second = next_batch(subscription);
  REQUIRE(bw_subscription_position(subscription.get(), &position) == BW_OK);
  CHECK(position.step == 1);
  REQUIRE(bw_batch_position(second.get(), &position) == BW_OK);
  CHECK(position.step == 1);
}

TEST_CASE("client: two subscriptions of a connection each get their own") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto one = subscribe(connection);
  const auto two = subscribe(connection);
  daemon.deliver(2, 0, 0, 0);
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(2, 0, 1, 1);
  CHECK(bw_batch_get_header(next_batch(one).get())->index == 0);
  CHECK(bw_batch_get_header(next_batch(two).get())->index == 0);
  CHECK(bw_batch_get_header(next_batch(two).get())->index == 1);
}

TEST_CASE("client: each released batch gives its lease back, once") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  const std::uint64_t first = daemon.deliver(1, 0, 0, 0);
  const std::uint64_t second = daemon.deliver(1, 0, 1, 1);
  auto one = next_batch(subscription);
  next_batch(subscription);  // released at once
  one.reset();
  CHECK(daemon.hears([&](const auto& heard) {
    return heard.released == std::vector<std::uint64_t>{second, first};
  }));
}

TEST_CASE("client: releases go together while batches are at hand, and all before it waits") {
  FakeDaemon daemon({.steps = 4000, .may_join = true});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  std::uint64_t step = 0;
  std::vector<std::uint64_t> leases;
  bool joined = false;
  // A machine that stops the test for 10 ms between two batches may be met in any round.
  for (int round = 0; round < 1000 && !joined; ++round) {
    for (int i = 0; i < 4; ++i, ++step) leases.push_back(daemon.deliver(1, 0, step, step));
    daemon.flush();
    for (int i = 0; i < 4; ++i) next_batch(subscription);  // each is released at once
    REQUIRE(daemon.hears([&](const auto& heard) { return heard.released == leases; }));
    joined = daemon.has_heard([&](const auto& heard) { return heard.releases < leases.size(); });
  }
  CHECK(joined);
}

TEST_CASE("client: without the daemon's leave each release is sent at once") {
  FakeDaemon daemon({.steps = 50});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  std::vector<std::uint64_t> leases;
  for (std::uint64_t step = 0; step < 4; ++step) leases.push_back(daemon.deliver(1, 0, step, step));
  daemon.flush();
  for (std::size_t taken = 1; taken < 4; ++taken) {
    next_batch(subscription);
    CHECK(daemon.hears([&](const auto& heard) { return heard.released.size() == taken; }));
  }
}

TEST_CASE("client: a subscription or connection that ends while releases wait ends all the same") {
  FakeDaemon daemon({.steps = 50, .may_join = true});
  auto connection = connect(daemon.endpoint());
  auto subscription = subscribe(connection);
  for (std::uint64_t step = 0; step < 4; ++step) daemon.deliver(1, 0, step, step);
  daemon.flush();
  for (int taken = 0; taken < 2; ++taken) next_batch(subscription);
  SUBCASE("the subscription") {
    subscription.reset();
    CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
  }
  SUBCASE("the connection") {
    connection.reset();
    CHECK(daemon.hears([](const auto& heard) { return heard.byes == 1; }));
  }
}

TEST_CASE("client: a wait that was in vain says what for") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.window = 1;
  const auto subscription = subscribe(connection, options);
  CHECK(next_status(subscription, 20) == BW_TIMED_OUT);
  CHECK(error_says("no batch of feed \"train\" within 20 ms"));
  CHECK(error_says("0 of 1 credits are out; the next batch is of epoch 0, step 0"));
  daemon.deliver(1, 0, 0, 0);
  const auto batch = next_batch(subscription);
  CHECK(next_status(subscription, 0) == BW_TIMED_OUT);
  CHECK(error_says("all 1 credits are out: release a batch"));
}

TEST_CASE("client: a ticket that points out of the arena ends the subscription") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  for (const std::uint64_t offset : {std::uint64_t{1} << 20, UINT64_MAX - 64}) {
    const auto subscription = subscribe(connection);
    wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
    ticket.subscription = offset == std::uint64_t{1} << 20 ? 1 : 2;
    ticket.offset = offset;
    daemon.send(std::move(ticket));
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
    CHECK(error_says("a batch was announced at"));
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  }
  // Its lease comes back with it.
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 2; }));
}

TEST_CASE("client: bytes that are no batch, or another one, are not shown") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto spoilt = subscribe(connection);
  wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
  ticket.subscription = 1;
  daemon.spoil(ticket.offset, 200);
  daemon.send(std::move(ticket));
  CHECK(next_status(spoilt) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("feed \"train\": batch 0 of epoch 0"));
  const auto exchanged = subscribe(connection);
  ticket = daemon.lay_out(0, 1, 1);
  ticket.subscription = 2;
  ticket.step = 0;
  ticket.index = 0;
  daemon.send(std::move(ticket));
  CHECK(next_status(exchanged) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("another batch lies there"));
}

TEST_CASE("client: a batch that is left out or comes twice is an error") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 0, 0);
  next_batch(subscription);
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("batch 0 of epoch 0 came where batch 1 of epoch 0 was due"));
  const auto early = subscribe(connection);
  daemon.deliver(2, 0, 0, 0);
  daemon.end_epoch(2, 0);
  next_batch(early);
  CHECK(next_status(early) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("the end of epoch 0 after 2 steps came where batch 1"));
}

TEST_CASE("client: what a feed failed with follows the batches that came before") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(ErrorCode::corrupt_record);
  refused.message = "key \"x\" is broken";
  refused.subscription = 1;
  daemon.send(std::move(refused));
  next_batch(subscription);
  CHECK(next_status(subscription) == BW_CORRUPT_RECORD);
  CHECK(error_says("key \"x\" is broken"));
  bw_position position{};
  REQUIRE(bw_subscription_position(subscription.get(), &position) == BW_OK);
  CHECK(position.step == 1);
}

TEST_CASE("client: a message that is none ends the conversation") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(builder.CreateString("noise"));
  daemon.send_bytes(builder.Release());
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  CHECK(daemon.hears([](const auto& heard) { return heard.byes == 1; }));
}
