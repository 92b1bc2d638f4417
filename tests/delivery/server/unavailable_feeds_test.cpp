#include "daemon/delivery/unavailable_feeds.h"

#include <doctest/doctest.h>

#include "tests/delivery/server/request.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

UnavailableFeed feed(const std::string& name, ErrorCode code = ErrorCode::store_unavailable) {
  return {name, {"/nowhere"}, {code, "it is away"}, {}};
}

struct Absent {
  explicit Absent(std::chrono::milliseconds grace)
      : feeds(io, grace, [this](const UnavailableFeeds::Pending& pending, const Error& why) {
          given_up.push_back(std::to_string(pending.request.subscription) + ": " + why.message);
        }) {}

  Result<void> let_wait(std::uint32_t number, const std::string& name) {
    return feeds.let_wait(client(1), Request(number, name).table(), *feeds.find(name));
  }

  boost::asio::io_context io;
  std::vector<std::string> given_up;
  UnavailableFeeds feeds;
};

}  // namespace

TEST_CASE("delivery: an absent feed's reason changes, and its arena's number stays known") {
  Absent absent(1h);
  CHECK(absent.feeds.find("train") == nullptr);
  auto failed = feed("train");
  failed.arena = ArenaNumber{3};
  absent.feeds.set(failed);
  absent.feeds.set(feed("dev"));
  absent.feeds.set(feed("train", ErrorCode::busy));
  REQUIRE(absent.feeds.all().size() == 2);
  CHECK(absent.feeds.find("train")->why.code == ErrorCode::busy);
  CHECK(absent.feeds.find("train")->arena == ArenaNumber{3});
  CHECK(absent.feeds.find("dev")->arena == std::nullopt);
}

TEST_CASE("delivery: a client waits only for what can pass, and where there is grace") {
  Absent absent(0ms);
  absent.feeds.set(feed("train"));
  absent.feeds.set(feed("broken", ErrorCode::corrupt_record));
  CHECK_FALSE(absent.feeds.lets_wait());
  CHECK(absent.let_wait(1, "train").error().message == "feed train is not served: it is away");
  absent.feeds.set_grace(1h);
  CHECK(absent.let_wait(1, "broken").error().code == ErrorCode::corrupt_record);
  CHECK(absent.let_wait(1, "train"));
  CHECK(absent.let_wait(1, "train").error().code == ErrorCode::invalid_argument);
}

TEST_CASE("delivery: a feed that is being opened is waited for, whether others are or not") {
  for (const auto grace : {0ms, 3'600'000ms}) {
    Absent absent(grace);
    absent.feeds.set(being_opened("train", {"/data"}));
    CHECK(absent.feeds.find("train")->told().message == "feed train is being opened");
    CHECK(absent.let_wait(1, "train"));
    absent.io.run_for(600ms);  // longer than from one look at those that wait to the next
    CHECK(absent.given_up.empty());
    // It turns out that it cannot be served as it is configured.
    absent.feeds.set(feed("train", ErrorCode::infeasible));
    absent.io.run_for(5s);
    CHECK(absent.given_up == std::vector<std::string>{"1: feed train is not served: it is away"});
  }
}

TEST_CASE("delivery: a feed that is absent no longer takes along the clients that wait for it") {
  Absent absent(1h);
  absent.feeds.set(feed("train"));
  absent.feeds.set(feed("dev"));
  for (const std::uint32_t number : {2U, 1U}) REQUIRE(absent.let_wait(number, "train"));
  REQUIRE(absent.let_wait(3, "dev"));
  CHECK(absent.feeds.awaited_by({{1}, {1}})->name == "train");
  CHECK(absent.feeds.awaited_by({{1}, {3}})->name == "dev");
  CHECK(absent.feeds.awaited_by({{2}, {1}}) == nullptr);
  const auto pending = absent.feeds.take_out("train");
  REQUIRE(pending.size() == 2);
  CHECK(pending[0].request.subscription == 2);
  CHECK(absent.feeds.find("train") == nullptr);
  CHECK(absent.feeds.awaited_by({{1}, {1}}) == nullptr);
  CHECK(absent.feeds.awaited_by({{1}, {3}}) != nullptr);
  CHECK(absent.feeds.take_out("train").empty());
}

TEST_CASE("delivery: a client that has waited for an absent feed for too long is given up") {
  Absent absent(1ms);
  absent.feeds.set(feed("train"));
  for (const std::uint32_t number : {1U, 2U, 3U}) REQUIRE(absent.let_wait(number, "train"));
  absent.feeds.pending().remove({{1}, {2}});
  absent.feeds.set(feed("train", ErrorCode::busy));
  absent.io.run();
  const std::string why = "feed train is not served: it is away";
  CHECK(absent.given_up == std::vector<std::string>{"1: " + why, "3: " + why});
  CHECK(absent.feeds.pending().empty());
}
