#include "client/library/link/silence.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

const Silence::Clock::time_point kBegin{1000s};
constexpr auto kTooLong = Silence::kLongest;

}  // namespace

TEST_CASE("client: a silence counts once a second look has heard nothing either") {
  Silence silence;
  silence.heard(kBegin);
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong - 1ms));
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong));
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong + Silence::kSecondLook - 1ms));
  CHECK(silence.is_too_long(kBegin + kTooLong + Silence::kSecondLook));
}

TEST_CASE("client: a program that did not look for hours does not lose its daemon by that") {
  Silence silence;
  silence.heard(kBegin);
  CHECK_FALSE(silence.is_too_long(kBegin + 5h));
  silence.heard(kBegin + 5h + 1ms);
  CHECK_FALSE(silence.is_too_long(kBegin + 5h + 1s));
}

TEST_CASE("client: bytes of a message on its way are heard, ZeroMQ's own answers are not") {
  Silence silence;
  silence.heard(kBegin);
  silence.flowed(Silence::kLeastFlow, kBegin + kTooLong - 1ms);
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong + 1s));
  silence.flowed(2 * Silence::kLeastFlow - 1, kBegin + 2 * kTooLong - 2ms);
  CHECK_FALSE(silence.is_too_long(kBegin + 2 * kTooLong));
  CHECK(silence.is_too_long(kBegin + 2 * kTooLong + Silence::kSecondLook));
}

TEST_CASE("client: a word of the daemon's ends the suspicion") {
  Silence silence;
  silence.heard(kBegin);
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong));
  silence.heard(kBegin + kTooLong);
  CHECK_FALSE(silence.is_too_long(kBegin + kTooLong + 1s));
  CHECK_FALSE(silence.is_too_long(kBegin + 2 * kTooLong));
  CHECK(silence.is_too_long(kBegin + 2 * kTooLong + Silence::kSecondLook));
}
