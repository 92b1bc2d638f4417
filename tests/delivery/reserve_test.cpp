#include <doctest/doctest.h>

#include "daemon/delivery/delivery.h"

using namespace batchwright;

namespace {

Subscription with_window(std::uint32_t window) {
  Subscription subscription({}, {1}, Cursor(whole_share(1), Epoch{0}, Step{0}));
  subscription.terms.window = window;
  return subscription;
}

void hold(Subscription& subscription, std::size_t batches) {
  subscription.leases.clear();
  for (std::size_t i = 0; i < batches; ++i) subscription.leases[{i}] = {};
  subscription.delivered += batches;
}

}  // namespace

TEST_CASE("delivery: a client waits when it says so, or by what an older one holds") {
  Subscription subscription = with_window(4);
  CHECK(subscription.says_it_waits());
  hold(subscription, 1);
  CHECK(!subscription.says_it_waits());
  subscription.asked = true;
  CHECK(subscription.says_it_waits());
  Subscription able = with_window(4);
  able.client.abilities = kAbilities;
  CHECK(!able.says_it_waits());
  able.asked = true;
  CHECK(able.says_it_waits());
}

TEST_CASE("delivery: a client holds batches since it got the oldest that it still has") {
  const WaitingTimes::Time begin{std::chrono::hours(1)};
  Subscription subscription = with_window(4);
  CHECK_FALSE(subscription.holds_since());
  // A lease that came back with its client may have a larger number than later ones.
  subscription.leases[{9}].since = begin;
  subscription.leases[{3}].since = begin + std::chrono::seconds(5);
  CHECK(subscription.holds_since() == begin);
  subscription.leases.erase({9});
  CHECK(subscription.holds_since() == begin + std::chrono::seconds(5));
}
