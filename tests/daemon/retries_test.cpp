#include "daemon/reload/retries.h"

#include <doctest/doctest.h>

using namespace batchwright;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

const Retries::Time kStart{std::chrono::hours(1)};

}  // namespace

TEST_CASE("daemon: a feed that cannot be opened is tried at pauses that double, up to a bound") {
  Retries retries;
  auto now = kStart;
  milliseconds pause = Retries::kFirst;
  for (int i = 0; i < 12; ++i) {
    retries.failed("dev", "gone", now);
    REQUIRE(retries.next() == now + pause);
    CHECK(retries.due(now).empty());
    now += pause;
    CHECK(retries.due(now) == std::vector<std::string>{"dev"});
    pause = std::min(2 * pause, Retries::kLongest);
  }
  CHECK(pause == Retries::kLongest);
}

TEST_CASE("daemon: a feed that is opened for the first time is due, and its success is no news") {
  Retries retries;
  retries.begin("dev", kStart);
  CHECK(retries.due(kStart) == std::vector<std::string>{"dev"});
  retries.trying("dev");
  CHECK(retries.waits("dev"));
  CHECK(retries.due(kStart + minutes(9)).empty());
  CHECK_FALSE(retries.next());
  SUBCASE("it is served") { CHECK_FALSE(retries.served("dev", kStart + seconds(1))); }
  SUBCASE("it is not") {
    CHECK(retries.failed("dev", "gone", kStart + seconds(1)));
    CHECK(retries.next() == kStart + seconds(1) + Retries::kFirst);
  }
}

TEST_CASE("daemon: a reason is news once, and again when it has changed") {
  Retries retries;
  CHECK(retries.failed("dev", "gone", kStart));
  CHECK_FALSE(retries.failed("dev", "gone", kStart + seconds(1)));
  CHECK(retries.failed("dev", "empty", kStart + seconds(2)));
  CHECK(retries.failed("dev", "needs 80.5 MiB, 10.25 are left", kStart + seconds(2)));
  CHECK_FALSE(retries.failed("dev", "needs 80.5 MiB, 9 are left", kStart + seconds(3)));
  CHECK(retries.failed("dev", "gone", kStart + seconds(3)));
  CHECK(retries.served("dev", kStart + seconds(9)) == seconds(9));
  CHECK(retries.failed("dev", "gone", kStart + seconds(10)));
}

TEST_CASE("daemon: a feed that fails soon after it was opened goes on with its pause") {
  Retries retries;
  auto now = kStart;
  for (int i = 0; i < 5; ++i) retries.failed("dev", "gone", now += seconds(20));
  retries.served("dev", now);
  CHECK_FALSE(retries.waits("dev"));
  CHECK_FALSE(retries.next());
  SUBCASE("soon") {
    now += seconds(10);
    retries.failed("dev", "gone", now);
    CHECK(*retries.next() - now > Retries::kFirst * 16);
  }
  SUBCASE("after a long time") {
    now += Retries::kSettled;
    retries.failed("dev", "gone", now);
    CHECK(*retries.next() - now == Retries::kFirst);
  }
}

TEST_CASE("daemon: feeds are tried at their own pace, and those that are gone not at all") {
  Retries retries;
  retries.failed("a", "gone", kStart);
  retries.failed("b", "gone", kStart + milliseconds(100));
  CHECK(retries.next() == kStart + Retries::kFirst);
  CHECK(retries.due(kStart + seconds(1)) == std::vector<std::string>{"a", "b"});
  retries.put_off("a", kStart + seconds(1));
  CHECK(retries.due(kStart + seconds(1)) == std::vector<std::string>{"b"});
  retries.keep({"a"});
  CHECK_FALSE(retries.waits("b"));
  CHECK(retries.waits("a"));
}
