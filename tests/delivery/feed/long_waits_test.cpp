#include "daemon/delivery/feed/long_waits.h"

#include <doctest/doctest.h>

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
  CHECK(!waits.note(kClient, true, 4, kStart + 3s));
  CHECK(waits.note(kClient, true, 4, kStart + 4s) == 1s);
  CHECK(!waits.note(kClient, false, 4, kStart + 5s));
  CHECK(!waits.note(kClient, true, 4, kStart + 6s));
}

TEST_CASE("delivery: waits of subscriptions that are gone still count") {
  LongWaits waits;
  WaitingTimes waited;
  waited.become(WaitingFor::daemon, kStart);
  waited.become(WaitingFor::client, kStart + 3s);
  waits.leave(kClient, waited, kStart + 5s);
  waits.leave(kClient, waited, kStart + 5s);
  CHECK(waits.before().clients == 6.0);
  CHECK(waits.before().daemon == 4.0);
}

TEST_CASE("delivery: ranks have five seconds to gather, from the last one that came") {
  LongWaits waits;
  waits.come(kStart + 10s);
  CHECK(!waits.is_gathering_over(kStart + 14s));
  CHECK(waits.is_gathering_over(kStart + 15s));
}
