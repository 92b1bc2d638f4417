#include <doctest/doctest.h>

#include "client/library/batchwright/client.hpp"
#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kTerms = "size = 16\nlayout = batch-major\n";

ThreadPolicy serving(const std::string& terms, std::uint64_t settings = 2) {
  ThreadPolicy manners;
  manners.serves = true;
  manners.terms = terms;
  manners.settings = settings;
  return manners;
}

}  // namespace

TEST_CASE("client: the terms of a subscription are told, sent with a position, and sent again") {
  FakeDaemon daemon(serving(kTerms));
  client::Connection connection(daemon.endpoint());
  client::Subscription subscription = connection.subscribe(
      {.feed = "train", .fingerprint = bw_fingerprint{1, 2, 3}, .terms = "size = 8\n"});
  CHECK(subscription.terms() == kTerms);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.subscribed.size() == 1 && heard.subscribed[0].terms == "size = 8\n";
  }));
  subscription.next(std::chrono::milliseconds(kLong));
  daemon.die();
  daemon.rise(serving(kTerms));
  subscription.next(std::chrono::milliseconds(kLong));
  CHECK(daemon.hears([](const auto& heard) {
    return heard.subscribed.size() == 2 && heard.subscribed[1].terms == kTerms;
  }));
  CHECK(bw_subscription_terms(nullptr) == nullptr);
}

TEST_CASE("client: a daemon that comes back with another layout is refused by the client itself") {
  FakeDaemon daemon(serving(kTerms));
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  next_batch(subscription);
  daemon.die();
  SUBCASE("and says so") {
    daemon.rise(serving("size = 24\nlayout = time-major\n", 7));
    CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
    CHECK(error_says("size: 16 before, 24 now; layout: batch-major before, time-major now"));
  }
  SUBCASE("and tells no terms") {
    daemon.rise(serving("", 7));
    CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
    CHECK(error_says("settings (or planner) changed"));
  }
  CHECK(position_of(subscription).step == 1);
}

TEST_CASE("client: an epoch that begins by other settings, and a batch of them, are not taken") {
  FakeDaemon daemon({.steps = 1});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  next_batch(subscription);
  daemon.end_epoch(1, 0);
  CHECK(next_status(subscription) == BW_EPOCH_END);
  SUBCASE("an epoch") {
    wire::EpochBeginT began;
    began.subscription = 1;
    began.epoch = 1;
    began.steps = 1;
    began.fingerprint = std::make_unique<wire::Fingerprint>(1, 9, 3);
    daemon.send(std::move(began));
    CHECK(next_status(subscription) == BW_FINGERPRINT_MISMATCH);
    CHECK(error_says("settings (or planner) changed"));
  }
  SUBCASE("a batch") {
    wire::EpochBeginT began;
    began.subscription = 1;
    began.epoch = 1;
    began.steps = 1;
    began.fingerprint = std::make_unique<wire::Fingerprint>(8, 2, 3);
    daemon.send(std::move(began));
    daemon.deliver(1, 1, 0, 0);
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
    CHECK(error_says("batch 0 of epoch 1 is not what was subscribed to: of its plan data changed"));
  }
}

TEST_CASE("client: a batch of another feed is not taken") {
  FakeDaemon daemon({.feed = "valid"});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("it is of feed \"valid\""));
}

TEST_CASE("client: the terms of several servers are told server by server") {
  FakeDaemon one(serving("size = 16\n"));
  FakeDaemon two(serving("size = 8\n"));
  const auto connection = connect(one.endpoint() + "," + two.endpoint());
  const auto subscription = subscribe(connection);
  const std::string terms = bw_subscription_terms(subscription.get());
  CHECK(terms == "server 0 size = 16\nserver 1 size = 8\n");
  bw_subscribe_options options = train();
  const bw_fingerprint other{1, 1, 1};
  options.fingerprint = &other;
  options.terms = "server 0 size = 16\nserver 1 size = 4\n";
  bw_subscription* raw = nullptr;
  CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_FINGERPRINT_MISMATCH);
  CHECK(error_says("server 1 size: 4 before, 8 now"));
}
