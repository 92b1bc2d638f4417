#include "client/library/link/host_lookup.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/no_threads.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

using Clock = HostLookup::Clock;

/// The address once there is one, or "" where the name has none.
std::string found(HostLookup& lookup, Clock::time_point now) {
  for (;;) {
    const auto address = lookup.address(now);
    REQUIRE(address);
    if (address->has_value()) return **address;
    if (lookup.trouble().find("is not known") != std::string::npos) return "";
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("client: addresses, and endpoints of another kind, are not looked up") {
  for (const char* const endpoint :
       {"ipc:///run/s", "tcp://127.0.0.1:9476", "tcp://[::1]:9476", "tcp://*:9476", "tcp://",
        "tcp://1.2.3.4", "tcp://10.0.0.1:0;10.0.0.2:9476"}) {
    CAPTURE(endpoint);
    CHECK_FALSE(HostLookup(endpoint).is_needed());
  }
  CHECK(HostLookup("tcp://localhost:9476").is_needed());
}

TEST_CASE("client: a name becomes an address, which is looked up again when it is stale") {
  HostLookup lookup("tcp://localhost:9476");
  const auto begin = Clock::now();
  CHECK(lookup.trouble() == "");
  CHECK(found(lookup, begin) == "tcp://127.0.0.1:9476");
  CHECK(lookup.trouble() == "");
  CHECK_FALSE(lookup.forget_stale(begin + 1s));
  CHECK(lookup.forget_stale(begin + HostLookup::kFresh));
  CHECK(found(lookup, begin + HostLookup::kFresh) == "tcp://127.0.0.1:9476");
}

TEST_CASE("client: a name that is not known is said to be, and asked for again after a pause") {
  HostLookup lookup("tcp://no-such-host.invalid:9476");
  CHECK(found(lookup, Clock::now()) == "");
  CHECK(lookup.trouble().starts_with("the host no-such-host.invalid is not known ("));
  CHECK(found(lookup, Clock::now() + HostLookup::kPause) == "");
}

TEST_CASE("client: a name without a thread to look it up is an error") {
  const test::NoThreads none;
  HostLookup lookup("tcp://localhost:9476");
  const auto address = lookup.address(Clock::now());
  REQUIRE_FALSE(address);
  CHECK(address.error().code == ErrorCode::io_error);
}
