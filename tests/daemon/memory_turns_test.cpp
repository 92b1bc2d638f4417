#include "daemon/reload/memory_turns.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

using namespace batchwright;
using namespace std::chrono_literals;

TEST_CASE("daemon: a feed claims memory once those above it in the file have") {
  MemoryTurns turns(1h);
  for (const std::size_t place : {2U, 0U, 1U}) turns.enter(place);
  turns.await(0, {});  // nothing is above it
  std::atomic<bool> came = false;
  std::jthread third([&](const std::stop_token& stop) {
    turns.await(2, stop);
    came = true;
  });
  turns.leave(1);
  CHECK_FALSE(came);
  turns.leave(0);
  third.join();
  CHECK(came);
}

TEST_CASE("daemon: what all others leave is known when all others have claimed") {
  MemoryTurns turns(1h);
  for (const std::size_t place : {0U, 1U}) turns.enter(place);
  std::jthread first([&](const std::stop_token& stop) { turns.await_others(0, stop); });
  turns.leave(1);
  first.join();
  turns.await_others(0, {});  // one that has left itself
  CHECK(true);
}

TEST_CASE("daemon: a feed does not wait forever for one above it, nor for one that is given up") {
  MemoryTurns hasty(1ms);
  hasty.enter(0);
  hasty.await(1, {});
  MemoryTurns turns(1h);
  turns.enter(0);
  std::jthread cleared([&](const std::stop_token& stop) { turns.await(1, stop); });
  turns.clear();
  cleared.join();
  turns.enter(0);
  std::jthread stopped([&](const std::stop_token& stop) { turns.await(1, stop); });
  stopped.request_stop();
  stopped.join();
  CHECK(true);
}
