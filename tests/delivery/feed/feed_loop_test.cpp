#include "daemon/delivery/feed/feed_loop.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

using Alarm = FeedLoop::Alarm;

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

TEST_CASE("delivery: an alarm that is set anew comes once, and can be set again from its call") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int early = 0;
  int late = 0;
  loop.set(Alarm::plans, now() + 1h, [&] { ++early; });
  loop.set(Alarm::plans, now(), [&] {
    ++late;
    CHECK(!loop.is_set(Alarm::plans));
    loop.set(Alarm::plans, now(), [&] { ++late; });
  });
  CHECK(loop.is_set(Alarm::plans));
  CHECK(!loop.is_set(Alarm::returns));
  io.run();
  CHECK(early == 0);
  CHECK(late == 2);
  CHECK(!loop.is_set(Alarm::plans));
}

TEST_CASE("delivery: after the loop is silenced no alarm comes, and none can be set") {
  boost::asio::io_context io;
  FeedLoop loop(io);
  int calls = 0;
  loop.set(Alarm::long_waits, now() + 1h, [&] { ++calls; });
  loop.silence();
  loop.set(Alarm::stragglers, now(), [&] { ++calls; });
  io.run();
  CHECK(calls == 0);
}

TEST_CASE("delivery: an alarm that is due when the loop goes finds nothing to call") {
  boost::asio::io_context io;
  int calls = 0;
  auto loop = std::make_unique<FeedLoop>(io);
  const FeedLoop::Time due = now();
  for (const Alarm alarm : {Alarm::returns, Alarm::plans}) {
    loop->set(alarm, due, [&] {
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
