// What a session makes of Refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "tests/client/session/scripted_run.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

/// How the subscription ends.
ErrorCode error_of(const ScriptedRun& run,
                   const std::shared_ptr<ClientSubscription>& subscription) {
  const auto nothing = run.session->next(subscription, run.session->after(1s));
  REQUIRE_FALSE(nothing);
  return nothing.error().code;
}

}  // namespace

TEST_CASE("client: a subscription that is refused ends alone") {
  ScriptedRun run;
  const auto refused = run.subscribe();
  const auto other = run.subscribe();
  run.refuse(refused->number().value, static_cast<std::uint16_t>(ErrorCode::corrupt_record));
  CHECK(error_of(run, refused) == ErrorCode::corrupt_record);
  run.deliver(*other, 0);
  CHECK(run.next(other)->header.index == 0);
}

TEST_CASE("client: a refusal of no subscription ends all") {
  ScriptedRun run;
  const auto one = run.subscribe();
  const auto other = run.subscribe();
  run.refuse(0, static_cast<std::uint16_t>(ErrorCode::unsupported));
  CHECK(error_of(run, one) == ErrorCode::unsupported);
  CHECK(error_of(run, other) == ErrorCode::unsupported);
}

TEST_CASE("client: a refusal without a code is a malformed message, and any code is kept") {
  for (const std::uint16_t code : std::to_array<std::uint16_t>({0, 1, 2})) {
    CAPTURE(code);
    ScriptedRun run;
    const auto subscription = run.subscribe();
    run.refuse(subscription->number().value, code);
    CHECK(error_of(run, subscription) ==
          (code == 0 ? ErrorCode::malformed_message : static_cast<ErrorCode>(code)));
  }
}

TEST_CASE("client: a batch of a feed that was replaced counts no more, nor does its release") {
  ScriptedRun run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  auto batch = run.next(subscription);
  run.refuse(subscription->number().value, static_cast<std::uint16_t>(ErrorCode::disconnected));
  CHECK_FALSE(run.session->next(subscription, run.session->after(100ms)));
  REQUIRE(run.subscribed.size() == 2);
  CHECK(run.subscribed.back().step == 1);
  CHECK(std::ranges::count(run.holds, 0U) == std::ssize(run.holds));
  CHECK_FALSE(run.holds.empty());
  run.release(std::move(batch));
  run.deliver(*subscription, 1);
  run.release(run.next(subscription));
  CHECK(run.releases == std::vector<std::vector<LeaseNumber>>{{{101}}});
}
