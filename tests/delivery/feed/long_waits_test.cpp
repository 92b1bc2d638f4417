#include "daemon/delivery/feed/long_waits.h"

#include <doctest/doctest.h>

#include <vector>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr SubscriptionKey kClient{SessionId{1}, {1}};
constexpr LongWaits::Time kStart{};

}  // namespace

TEST_CASE("delivery: a wait is long after a second, and begins anew with each batch") {
  LongWaits waits;
  CHECK(!waits.note(kClient, true, 3, kStart));
  CHECK(!waits.note(kClient, true, 3, kStart + 999ms));
  CHECK(waits.note(kClient, true, 3, kStart + 2500ms) == 2s);
  CHECK(!waits.note(kClient, true, 4, kStart + 10s));
  CHECK(waits.note(kClient, true, 4, kStart + 11s) == 1s);
  CHECK(!waits.note(kClient, false, 4, kStart + 12s));
  CHECK(!waits.note(kClient, true, 4, kStart + 20s));
}

TEST_CASE("delivery: a wait that goes on is told after pauses that double, up to ten minutes") {
  LongWaits waits;
  std::vector<std::int64_t> told;
  for (int second = 0; second < 3000; ++second) {
    const auto found = waits.note(kClient, true, 3, kStart + std::chrono::seconds(second));
    if (found) told.push_back(found->count());
  }
  CHECK(told ==
        std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1624, 2224, 2824});
}

TEST_CASE("delivery: a client that waits long for each batch is told as one that goes on waiting") {
  LongWaits waits;
  int told = 0;
  // Three seconds a batch.
  for (int second = 0; second < 60; ++second) {
    const auto delivered = static_cast<std::uint64_t>(second / 3);
    if (waits.note(kClient, true, delivered, kStart + std::chrono::seconds(second))) ++told;
  }
  CHECK(told == 6);
  // Once it has not waited for a pause, the next wait is news again.
  CHECK(!waits.note(kClient, true, 100, kStart + 10min));
  CHECK(waits.note(kClient, true, 100, kStart + 10min + 1s) == 1s);
  CHECK(waits.note(kClient, true, 100, kStart + 10min + 2s) == 2s);
}

TEST_CASE("delivery: waits of subscriptions that are gone still count") {
  LongWaits waits;
  WaitingTimes waited;
  waited.become(WaitingFor::daemon, kStart);
  waited.become(WaitingFor::slot, kStart + 1s);
  waited.become(WaitingFor::client, kStart + 3s);
  waits.leave(kClient, waited, kStart + 5s);
  waits.leave(kClient, waited, kStart + 5s);
  CHECK(waits.before().clients == 6.0);
  CHECK(waits.before().slots == 4.0);
  CHECK(waits.before().daemon == 4.0);
}

TEST_CASE("delivery: ranks have five seconds to gather, from the last one that came") {
  LongWaits waits;
  waits.come(kStart + 10s);
  CHECK(!waits.is_gathering_over(kStart + 14s));
  CHECK(waits.is_gathering_over(kStart + 15s));
}

TEST_CASE("delivery: a feed is blocked once a file system has not answered for five seconds") {
  LongWaits waits;
  const Blockage pages{"dataset /mnt/far", kStart};
  CHECK(!waits.look(pages, kStart + 4s).is_blocked);
  CHECK(!waits.blockage());
  CHECK(waits.look(pages, kStart + 5s).is_blocked);
  REQUIRE(waits.blockage());
  CHECK(describe(*waits.blockage(), kStart + 7500ms) ==
        "the file system of dataset /mnt/far has not answered for 7 s");
  CHECK(!waits.look(pages, kStart + 6s).is_blocked);  // no news
  const auto over = waits.look({}, kStart + 9s);
  CHECK(!over.is_blocked);
  REQUIRE(over.is_over);
  CHECK(over.is_over->since == kStart);
  CHECK(!waits.blockage());
  CHECK(!waits.look({}, kStart + 10s).is_over);
}

TEST_CASE("delivery: a feed that is blocked by one thing after another is told of each") {
  LongWaits waits;
  CHECK(waits.look(Blockage{"journal /a", kStart}, kStart + 5s).is_blocked);
  const auto next = waits.look(Blockage{"ledger /b", kStart + 1s}, kStart + 6s);
  CHECK(next.is_blocked);
  REQUIRE(next.is_over);
  CHECK(next.is_over->by == "journal /a");
  // An answer that comes within five seconds ends it all the same.
  CHECK(waits.look(Blockage{"ledger /b", kStart + 6s}, kStart + 7s).is_over);
}
