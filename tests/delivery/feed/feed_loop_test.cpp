#include "daemon/delivery/feed/feed_loop.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

FeedLoop::Time now() { return FeedLoop::Time::clock::now(); }

}  // namespace

TEST_CASE("delivery: a turn comes once, however often it is asked for") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int turns = 0;
  for (int i = 0; i < 3; ++i) loop.soon([&] { ++turns; });
  CHECK(!loop.at_rest());
  io.run();
  CHECK(turns == 1);
  CHECK(loop.at_rest());
  loop.soon([&] { ++turns; });
  io.restart();
  io.run();
  CHECK(turns == 2);
}

TEST_CASE("delivery: a timer that is set again comes once, and can be set again from its call") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int early = 0;
  int late = 0;
  loop.set(FeedTimer::plans, now() + 1h, [&] { ++early; });
  loop.set(FeedTimer::plans, now(), [&] {
    ++late;
    CHECK(!loop.is_set(FeedTimer::plans));
    loop.set(FeedTimer::plans, now(), [&] { ++late; });
  });
  CHECK(loop.is_set(FeedTimer::plans));
  CHECK(!loop.is_set(FeedTimer::returns));
  io.run();
  CHECK(early == 0);
  CHECK(late == 2);
  CHECK(!loop.is_set(FeedTimer::plans));
}

TEST_CASE("delivery: after the loop is silenced no timer comes, and none can be set") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int calls = 0;
  loop.set(FeedTimer::long_waits, now() + 1h, [&] { ++calls; });
  loop.silence();
  loop.set(FeedTimer::stragglers, now(), [&] { ++calls; });
  io.run();
  CHECK(calls == 0);
}

TEST_CASE("delivery: a timer that is due when the loop goes finds nothing to call") {
  boost::asio::io_context io;
  int calls = 0;
  auto loop = std::make_unique<FeedLoop>(io);
  const FeedLoop::Time due = now();
  for (const FeedTimer timer : {FeedTimer::returns, FeedTimer::plans}) {
    loop->set(timer, due, [&] {
      ++calls;
      loop.reset();
    });
  }
  io.run();
  CHECK(calls == 1);
}

TEST_CASE("delivery: a feed is at rest once every call back has come, from whichever thread") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  std::optional<int> result;
  std::thread::id called_on;
  auto sent = loop.awaited([] {});
  auto made = loop.brought_back([&](int value) {
    result = value;
    called_on = std::this_thread::get_id();
  });
  CHECK(!loop.at_rest());
  sent();
  CHECK(!loop.at_rest());
  std::thread([made]() mutable { made(7); }).join();
  CHECK(!result);
  io.run();
  CHECK(result == 7);
  CHECK(called_on == std::this_thread::get_id());
  CHECK(loop.at_rest());
}

TEST_CASE("delivery: what a turn's gathered calls put off to its end is that turn") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int turns = 0;
  const auto turn = [&] { ++turns; };
  auto gathered = loop.gathered([&] { loop.soon(turn); });
  auto other = loop.gathered([] {});
  loop.wake_for_each(false);
  gathered();
  loop.call_gathered();
  CHECK(io.poll() == 0);
  CHECK(turns == 0);
  loop.soon(turn);
  io.restart();
  io.poll();
  CHECK(turns == 1);
  other();
  io.restart();
  io.run();
  CHECK(loop.at_rest());
}

TEST_CASE("delivery: what is done elsewhere comes back to the loop") {
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  FeedLoop loop(io);
  std::thread::id worked_on;
  std::unique_ptr<int> result;
  loop.elsewhere(
      [&] {
        worked_on = std::this_thread::get_id();
        return std::make_unique<int>(3);
      },
      [&](std::unique_ptr<int> made) {
        result = std::move(made);
        io.stop();
      });
  io.run();
  REQUIRE(result);
  CHECK(*result == 3);
  CHECK(worked_on != std::this_thread::get_id());
  CHECK(loop.at_rest());
}
