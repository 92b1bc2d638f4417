#include "daemon/delivery/pending_subscriptions.h"

#include <doctest/doctest.h>

#include "tests/delivery/server/request.h"

using namespace batchwright;
using namespace batchwright::test;
using std::chrono::seconds;

namespace {

const PendingSubscriptions::Time kStart{std::chrono::hours(1)};

std::vector<std::uint64_t> sessions(const std::vector<PendingSubscriptions::Pending>& pending) {
  std::vector<std::uint64_t> all;
  for (const auto& each : pending) all.push_back(each.client.session.value);
  return all;
}

}  // namespace

TEST_CASE("delivery: clients that wait for a feed leave with it, in order, and others stay") {
  PendingSubscriptions room;
  REQUIRE(room.let_in(client(9), Request(1, "dev").table(), kStart));
  REQUIRE(room.let_in(client(3), Request(1, "train").table(), kStart + seconds(1)));
  REQUIRE(room.let_in(client(2), Request(1, "dev").table(), kStart + seconds(2)));
  CHECK(sessions(room.all_for("dev")) == std::vector<std::uint64_t>{9, 2});
  CHECK_FALSE(room.empty());
  CHECK(room.find({SessionId{3}, {1}})->request.feed == "train");
  CHECK(room.find({SessionId{9}, {1}}) == nullptr);
}

TEST_CASE("delivery: a client that has waited too long leaves, and one that has not stays") {
  PendingSubscriptions room;
  REQUIRE(room.let_in(client(1), Request(1, "dev").table(), kStart));
  REQUIRE(room.let_in(client(2), Request(1, "dev").table(), kStart + seconds(1)));
  CHECK(room.overdue("dev", kStart + seconds(59), seconds(60)).empty());
  CHECK(room.overdue("train", kStart + seconds(99), seconds(60)).empty());
  CHECK(room.waiting_for("train").empty());
  REQUIRE(room.waiting_for("dev").size() == 2);
  CHECK(room.waiting_for("dev")[1]->client.session.value == 2);
  CHECK(sessions(room.overdue("dev", kStart + seconds(60), seconds(60))) ==
        std::vector<std::uint64_t>{1});
  CHECK(sessions(room.overdue("dev", kStart + seconds(61), seconds(60))) ==
        std::vector<std::uint64_t>{2});
  CHECK(room.empty());
}

TEST_CASE("delivery: what is released while a queue is waited for counts as released") {
  PendingSubscriptions room;
  REQUIRE(room.let_in(client(1), Request(1, "dev", {5, 6, 7}).table(), kStart));
  room.release({SessionId{1}, {1}}, std::vector<LeaseNumber>{{6}, {99}});
  room.release({SessionId{1}, {2}}, std::vector<LeaseNumber>{{5}});
  const auto pending = room.all_for("dev");
  REQUIRE(pending.size() == 1);
  CHECK(pending[0].request.held == std::vector<std::uint64_t>{5, 7});
  CHECK(pending[0].request.released == std::vector<std::uint64_t>{6});
}

TEST_CASE("delivery: a number is taken once, a session waits for so much, and leaves altogether") {
  PendingSubscriptions room;
  CHECK(room.let_in(client(1), Request(0, "dev").table(), kStart).error().code ==
        ErrorCode::invalid_argument);
  for (std::uint32_t i = 1; i <= PendingSubscriptions::kMost; ++i) {
    REQUIRE(room.let_in(client(1), Request(i, "dev").table(), kStart));
  }
  CHECK(room.let_in(client(1), Request(1, "dev").table(), kStart).error().code ==
        ErrorCode::invalid_argument);
  CHECK(room.let_in(client(1), Request(1000, "dev").table(), kStart).error().code ==
        ErrorCode::does_not_fit);
  REQUIRE(room.let_in(client(2), Request(1, "dev").table(), kStart));
  room.remove_session(SessionId{1});
  CHECK(sessions(room.all_for("dev")) == std::vector<std::uint64_t>{2});
}
