#include "client/library/link/silence.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

const Silence::Clock::time_point kStart{1000s};
constexpr auto kLong = Silence::kLongest;

}  // namespace

TEST_CASE("client: a silence counts once a second look has heard nothing either") {
  Silence silence;
  silence.heard(kStart);
  CHECK_FALSE(silence.is_too_long(kStart + kLong - 1ms));
  CHECK_FALSE(silence.is_too_long(kStart + kLong));
  CHECK_FALSE(silence.is_too_long(kStart + kLong + Silence::kSecondLook - 1ms));
  CHECK(silence.is_too_long(kStart + kLong + Silence::kSecondLook));
}

TEST_CASE("client: a program that did not look for hours does not lose its daemon by that") {
  Silence silence;
  silence.heard(kStart);
  CHECK_FALSE(silence.is_too_long(kStart + 5h));
  silence.heard(kStart + 5h + 1ms);
  CHECK_FALSE(silence.is_too_long(kStart + 5h + 1s));
}

TEST_CASE("client: a word of the daemon's ends the suspicion") {
  Silence silence;
  silence.heard(kStart);
  CHECK_FALSE(silence.is_too_long(kStart + kLong));
  silence.heard(kStart + kLong);
  CHECK_FALSE(silence.is_too_long(kStart + kLong + 1s));
  CHECK_FALSE(silence.is_too_long(kStart + 2 * kLong));
  CHECK(silence.is_too_long(kStart + 2 * kLong + Silence::kSecondLook));
}
