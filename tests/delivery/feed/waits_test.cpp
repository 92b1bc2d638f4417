#include <doctest/doctest.h>

#include <vector>

#include "daemon/delivery/feed/core/subscription.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr LongWait::Time kStart{};

}  // namespace

TEST_CASE("delivery: a wait is long after a second, and begins again with each batch") {
  LongWait wait;
  CHECK(!wait.note(true, 3, kStart));
  CHECK(!wait.note(true, 3, kStart + 999ms));
  CHECK(wait.note(true, 3, kStart + 2500ms) == 2s);
  CHECK(!wait.note(true, 4, kStart + 10s));
  CHECK(wait.note(true, 4, kStart + 11s) == 1s);
  CHECK(!wait.note(false, 4, kStart + 12s));
  CHECK(!wait.note(true, 4, kStart + 20s));
}

TEST_CASE("delivery: a wait that goes on is told after pauses that double, up to ten minutes") {
  LongWait wait;
  std::vector<std::int64_t> told;
  for (int second = 0; second < 3000; ++second) {
    const auto found = wait.note(true, 3, kStart + std::chrono::seconds(second));
    if (found) told.push_back(found->count());
  }
  CHECK(told ==
        std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1624, 2224, 2824});
}

TEST_CASE("delivery: a client that waits long for each batch is told as one that goes on waiting") {
  LongWait wait;
  int told = 0;
  // Three seconds a batch.
  for (int second = 0; second < 60; ++second) {
    const auto delivered = static_cast<std::uint64_t>(second / 3);
    if (wait.note(true, delivered, kStart + std::chrono::seconds(second))) ++told;
  }
  CHECK(told == 6);
  // Once it has not waited for a pause, the next wait is news again.
  CHECK(!wait.note(true, 100, kStart + 10min));
  CHECK(wait.note(true, 100, kStart + 10min + 1s) == 1s);
  CHECK(wait.note(true, 100, kStart + 10min + 2s) == 2s);
}

TEST_CASE("delivery: the seconds that subscriptions waited are summed by what they waited for") {
  WaitingTimes waited;
  waited.become(WaitingFor::daemon, kStart);
  waited.become(WaitingFor::slot, kStart + 1s);
  waited.become(WaitingFor::client, kStart + 3s);
  WaitedSeconds sum;
  for (int i = 0; i < 2; ++i) sum.add(waited, kStart + 5s);
  CHECK(sum.clients == 6.0);
  CHECK(sum.slots == 4.0);
  CHECK(sum.daemon == 4.0);
}
