// Frames of pushes that come in parts, and what a producer can do with them.

#include <doctest/doctest.h>

#include <memory>

#include "tests/delivery/live/raw_producer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What the pool of live_feed() takes.
constexpr std::uint64_t kPoolBytes = 1 << 20;

}  // namespace

TEST_CASE("delivery: a part that is not the next, or for which there is no room, ends its frame") {
  const TestServer server(live_feed(4));
  RawProducer producer(server, "actor");
  const std::vector<std::byte> part(64);
  const auto code = [&](std::uint64_t total, std::uint64_t at, std::size_t bytes = 64) {
    const auto answer = producer.push_part(total, at, std::span(part).first(bytes));
    REQUIRE(answer);
    CHECK((answer->code != 0) == (answer->taken == 0));
    return static_cast<ErrorCode>(answer->code);
  };
  constexpr auto kTaken = static_cast<ErrorCode>(0);
  CHECK(code(256, 64) == ErrorCode::invalid_argument);  // none has begun
  CHECK(code(256, 0) == kTaken);
  CHECK(code(256, 128) == ErrorCode::invalid_argument);  // a gap
  CHECK(code(256, 64) == ErrorCode::invalid_argument);   // it ended with that
  CHECK(code(256, 0) == kTaken);
  CHECK(code(512, 64) == ErrorCode::invalid_argument);  // another frame
  CHECK(code(65, 0) == kTaken);
  CHECK(code(65, 64) == ErrorCode::invalid_argument);  // beyond its end
  CHECK(code(256, 0, 0) == ErrorCode::invalid_argument);
  CHECK(code(std::uint64_t{1} << 60, 0) == ErrorCode::does_not_fit);
  // The room comes back each time.
  for (int i = 0; i < 10; ++i) CHECK(code(kPoolBytes, 0) == kTaken);
  // A Push that is whole ends it, too.
  CHECK(producer.push({{0, 5}}) == 1);
  CHECK(code(256, 64) == ErrorCode::invalid_argument);
}

TEST_CASE(
    "delivery: all frames in parts have four times the pool, and room comes back with an end") {
  const TestServer server(live_feed(4));
  const std::vector<std::byte> part(64);
  const auto begin = [&](RawProducer& producer) {
    const auto answer = producer.push_part(kPoolBytes, 0, part);
    REQUIRE(answer);
    return static_cast<ErrorCode>(answer->code);
  };
  std::vector<std::unique_ptr<RawProducer>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::make_unique<RawProducer>(server, "p" + std::to_string(i)));
    CHECK(begin(*all.back()) == (i < 4 ? static_cast<ErrorCode>(0) : ErrorCode::timed_out));
  }
  wire::CloseProducerT close;
  close.producer = 1;
  all.front()->client().send(std::move(close));
  // Its answer says that the daemon has heard of the end.
  CHECK_FALSE(all.front()->claim(1));
  CHECK(begin(*all.back()) == static_cast<ErrorCode>(0));
}
