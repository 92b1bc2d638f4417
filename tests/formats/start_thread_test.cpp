#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <string>

#include "formats/formats.h"
#include "tests/support/no_threads.h"

using namespace batchwright;

namespace {

std::string own_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace

TEST_CASE("formats: a thread has its name, or that of the thread that starts it") {
  std::string named;
  std::string unnamed;
  {
    std::atomic<bool> may_look = false;  // the name is given after the start
    const auto one = start_thread("bw-test", [&](const auto&) {
      may_look.wait(false);
      named = own_name();
    });
    const auto other = start_thread(nullptr, [&](const auto&) { unnamed = own_name(); });
    REQUIRE(one);
    REQUIRE(other);
    may_look = true;
    may_look.notify_one();
  }
  CHECK(named == "bw-test");
  CHECK(unnamed == own_name());
}

TEST_CASE("formats: a thread is asked to stop, and waited for, where its owner goes") {
  bool stopped = false;
  {
    std::atomic<bool> runs = false;
    const auto thread = start_thread("bw-test", [&](const auto& stop) {
      runs = true;
      runs.notify_one();
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
    });
    REQUIRE(thread);
    runs.wait(false);
  }
  CHECK(stopped);
}

TEST_CASE("formats: where no thread can be had nothing is done") {
  bool done = false;
  {
    const test::NoThreads none;
    CHECK_FALSE(start_thread("bw-test", [&done](const auto&) { done = true; }).has_value());
  }
  CHECK_FALSE(done);
  CHECK(start_thread("bw-test", [&done](const auto&) { done = true; }).has_value());
  CHECK(done);
}
