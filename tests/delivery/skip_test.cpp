#include <doctest/doctest.h>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"
#include "tests/support/flip_byte.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FeedSettings skipping(double max_corrupt_share) {
  FeedSettings settings = sorted_feed(4);
  settings.on_corrupt = OnCorrupt::skip;
  settings.max_corrupt_share = max_corrupt_share;
  return settings;
}

/// Damages so many of the 40 sequences, each in a batch of its own.
TestServer::Amend damage(std::uint64_t sequences) {
  return [sequences](const std::filesystem::path& dataset, FeedResources& resources) {
    std::vector<Row> rows;
    for (std::uint64_t i = 0; i < sequences; ++i) {
      resources.data.first_epoch.source->plan.rows(BatchIndex{9 - i}, rows);
      const float value = small_value(rows.front().ordinal, 0, 1);
      REQUIRE(flip_byte(dataset / "data.mdb", &value, sizeof value));
    }
  };
}

wire::SubscribeT one_epoch() {
  auto subscribe = subscribe_to_train();
  subscribe.epochs = 1;
  return subscribe;
}

}  // namespace

TEST_CASE("delivery: more corrupt sequences than the allowed share make the feed fail") {
  TestServer server(skipping(0.05), damage(3));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(one_epoch());
  const auto refused = [&] {
    for (;;) {
      auto message = client.receive();
      if (!message || message->as<wire::Refused>() != nullptr) return message;
      if (const auto* delivery = message->as<wire::Delivery>()) {
        client.send(release_of(unpacked(*delivery)));
      }
    }
  }();
  REQUIRE(refused);
  CHECK(refused->as<wire::Refused>()->code() ==
        static_cast<std::uint16_t>(ErrorCode::corrupt_record));
  const std::string why = refused->as<wire::Refused>()->message()->str();
  CHECK(why.find("3 of the 40 sequences of epoch 0 are corrupt so far, max_corrupt_share = 0.05 "
                 "allows 2") != std::string::npos);
  CHECK(server.feed().failure.has_value());
}

TEST_CASE("delivery: as many corrupt sequences as are allowed are left out, epoch after epoch") {
  TestServer server(skipping(0.05), damage(2));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = one_epoch();
  subscribe.epochs = 3;
  client.send(std::move(subscribe));
  CHECK(indices_to_the_end(client).size() == 30);
  CHECK(server.count(FeedCounter::sequences_skipped) >= 6);
  CHECK(server.count(FeedCounter::corrupt_records) == 2);
}

TEST_CASE("delivery: one corrupt sequence is borne, however small the dataset, unless none is") {
  CHECK(losses_allowed(0.01, 40) == 1);
  CHECK(losses_allowed(0.01, 1000) == 10);
  CHECK(losses_allowed(1.0, 40) == 40);
  CHECK(losses_allowed(0.0, 1000) == 0);
}
