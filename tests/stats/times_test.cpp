#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/stats/stats.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

std::size_t range_of(Histogram::Duration duration) {
  Histogram times;
  times.add(duration);
  for (std::size_t i = 0; i < Histogram::kBounds; ++i) {
    if (times.in_range(i) == 1) return i;
  }
  return Histogram::kBounds;
}

}  // namespace

TEST_CASE("stats: a duration lies in the first range whose bound it does not pass") {
  CHECK(range_of(0ns) == 0);
  CHECK(range_of(-5s) == 0);
  CHECK(range_of(1us) == 0);
  CHECK(range_of(1001ns) == 1);
  CHECK(range_of(2us) == 1);
  CHECK(range_of(2001ns) == 2);
  CHECK(range_of(4us) == 2);
  for (std::size_t i = 0; i < Histogram::kBounds; ++i) {
    const auto bound = Histogram::Duration(static_cast<std::int64_t>(1000ULL << i));
    CAPTURE(i);
    CHECK(Histogram::bound_seconds(i) == doctest::Approx(1e-9 * double(bound.count())));
    CHECK(range_of(bound) == i);
    CHECK(range_of(bound + 1ns) == i + 1);
  }
  CHECK(range_of(std::chrono::hours(1000)) == Histogram::kBounds);
}

TEST_CASE("stats: count, sum and quantiles of durations") {
  Histogram times;
  CHECK(!times.quantile(0.5));
  CHECK(times.count() == 0);
  for (int i = 0; i < 98; ++i) times.add(3us);
  times.add(1000us);
  times.add(1min);
  CHECK(times.count() == 100);
  CHECK(times.seconds() == doctest::Approx(60.001294));
  CHECK(*times.quantile(0.5) > 2e-6);
  CHECK(*times.quantile(0.5) <= 4e-6);
  CHECK(*times.quantile(0.985) > 512e-6);
  CHECK(*times.quantile(0.985) <= 1024e-6);
  CHECK(*times.quantile(1.0) == Histogram::bound_seconds(Histogram::kBounds - 1));
  CHECK(*times.quantile(0.0) <= 4e-6);
}

TEST_CASE("stats: durations from several threads add up") {
  StageTimes times;
  const auto add = [&] {
    for (int i = 0; i < 10'000; ++i) times.add(Stage::assemble, 2us);
  };
  std::thread one(add), two(add);
  one.join();
  two.join();
  CHECK(times.of(Stage::assemble).count() == 20'000);
  CHECK(times.of(Stage::assemble).seconds() == doctest::Approx(0.04));
  CHECK(times.of(Stage::deliver).count() == 0);
}

TEST_CASE("stats: a wait counts while it lasts, and only for whom is waited") {
  const WaitingTimes::Time start{};
  WaitingTimes waiting;
  CHECK(waiting.daemon_seconds(start + 9s) == 0.0);
  waiting.become(WaitingFor::daemon, start + 10s);
  CHECK(waiting.daemon_seconds(start + 12s) == 2.0);
  waiting.become(WaitingFor::daemon, start + 13s);  // no news
  CHECK(waiting.daemon_seconds(start + 15s) == 5.0);
  CHECK(waiting.client_seconds(start + 15s) == 0.0);
  waiting.become(WaitingFor::client, start + 15s);
  CHECK(waiting.now() == WaitingFor::client);
  CHECK(waiting.daemon_seconds(start + 20s) == 5.0);
  CHECK(waiting.client_seconds(start + 20s) == 5.0);
  waiting.become(WaitingFor::none, start + 21s);
  waiting.become(WaitingFor::daemon, start + 30s);
  CHECK(waiting.daemon_seconds(start + 31s) == 6.0);
  CHECK(waiting.client_seconds(start + 31s) == 6.0);
}

TEST_CASE("stats: a wait for a slot or a step is a wait for the daemon, and known by itself") {
  const WaitingTimes::Time start{};
  WaitingTimes waiting;
  waiting.become(WaitingFor::slot, start);
  waiting.become(WaitingFor::daemon, start + 2s);
  CHECK(waiting.daemon_seconds(start + 5s) == 5.0);
  CHECK(waiting.slot_seconds(start + 5s) == 2.0);
  CHECK(waiting.client_seconds(start + 5s) == 0.0);
  waiting.become(WaitingFor::step, start + 5s);
  CHECK(waiting.daemon_seconds(start + 6s) == 6.0);
  CHECK(waiting.step_seconds(start + 6s) == 1.0);
}

TEST_CASE("stats: waits that a client tells afterwards count, up to the time that has passed") {
  const WaitingTimes::Time start{};
  WaitingTimes waiting(start);
  waiting.add_short(300ms, start + 1s);
  CHECK(waiting.daemon_seconds(start + 1s) == doctest::Approx(0.3));
  waiting.add_short(5s, start + 3s);
  CHECK(waiting.daemon_seconds(start + 3s) == doctest::Approx(2.3));
}

TEST_CASE("stats: a thread that is ready and has no processor is delayed, one that sleeps is not") {
  // More threads than processors, each of which wants to run all the time.
  std::atomic<bool> enough{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
    busy.emplace_back([&] {
      while (!enough) {
      }
    });
  }
  const auto before = thread_run_delay();
  while (thread_run_delay() - before < 20ms) {
  }
  CHECK(process_run_delay() > thread_run_delay());
  enough = true;
  for (std::thread& each : busy) each.join();
}
