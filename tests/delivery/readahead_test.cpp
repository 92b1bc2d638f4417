#include <doctest/doctest.h>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::uint64_t wishes(TestServer& server) {
  return server.feed().stages->of(Stage::readahead).count();
}

bool take(RawClient& client, int batches) {
  while (batches > 0) {
    const auto message = client.receive();
    if (!message) return false;
    const auto* delivery = message->as<wire::Delivery>();
    if (delivery == nullptr) continue;  // an epoch begins or ends
    client.send(release_of(unpacked(*delivery)));
    --batches;
  }
  return true;
}

}  // namespace

TEST_CASE("delivery: the kernel is asked for pages until all of them are in place") {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 2;
  TestServer server(settings);
  RawClient client(server.endpoint());
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  subscribe.epochs = 0;
  REQUIRE(join(client, server.arena_socket(), std::move(subscribe)));
  REQUIRE(take(client, 10));
  CHECK(server.eventually([](TestServer& s) { return wishes(s) > 0; }));
  bool without = false;
  for (int round = 0; round < 100 && !without; ++round) {
    const std::uint64_t before = wishes(server);
    REQUIRE(take(client, 50));
    without = wishes(server) == before;
  }
  CHECK(without);
}
