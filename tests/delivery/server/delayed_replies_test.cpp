#include "daemon/delivery/delayed_replies.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace batchwright;

TEST_CASE("delivery: late answers leave one by one for each session, and are bounded") {
  boost::asio::io_context io;
  DelayedReplies late(io, std::chrono::hours(1), {});
  const Error error{ErrorCode::not_found, "no"};
  for (std::uint32_t i = 0; i < DelayedReplies::kWaiting; ++i) REQUIRE(late.add({1}, {{i}, error}));
  CHECK_FALSE(late.add({1}, {{99}, error}));
  CHECK(late.add({2}, {{7}, error}));
  auto due = late.take_due();
  REQUIRE(due.size() == 2);
  CHECK(due[0].second.subscription.value == 0);
  CHECK(due[1].second.subscription.value == 7);
  due = late.take_due();
  REQUIRE(due.size() == 1);
  CHECK(due[0].second.subscription.value == 1);
  late.forget({1});
  CHECK(late.empty());
  CHECK(late.take_due().empty());
}

TEST_CASE("delivery: late answers are sent until none is left, and a session that ends gets none") {
  boost::asio::io_context io;
  std::vector<std::pair<SessionId, std::uint32_t>> sent;
  DelayedReplies late(io, std::chrono::milliseconds(1),
                      [&](SessionId session, const auto& refusal) {
                        sent.emplace_back(session, refusal.subscription.value);
                        late.forget({2});
                      });
  const Error error{ErrorCode::not_found, "no"};
  for (const std::uint32_t number : {1U, 2U}) REQUIRE(late.add({1}, {{number}, error}));
  for (const std::uint32_t number : {7U, 8U}) REQUIRE(late.add({2}, {{number}, error}));
  CHECK(sent.empty());
  io.run();
  const std::vector<std::pair<SessionId, std::uint32_t>> expected{{{1}, 1}, {{2}, 7}, {{1}, 2}};
  CHECK(sent == expected);
  CHECK(late.empty());
}
