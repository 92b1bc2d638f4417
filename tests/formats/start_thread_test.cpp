#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "formats/formats.h"

using namespace batchwright;

namespace {

/// While it lives no thread can be had: each would take a stack of 128 TiB.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t all;
    REQUIRE(pthread_getattr_default_np(&all) == 0);
    REQUIRE(pthread_attr_getstacksize(&all, &before_) == 0);
    set(std::size_t{1} << 47);
    pthread_attr_destroy(&all);
  }
  ~NoThreads() { set(before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void set(std::size_t stack) {
    pthread_attr_t all;
    REQUIRE(pthread_getattr_default_np(&all) == 0);
    REQUIRE(pthread_attr_setstacksize(&all, stack) == 0);
    REQUIRE(pthread_setattr_default_np(&all) == 0);
    pthread_attr_destroy(&all);
  }

  std::size_t before_ = 0;
};

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
    std::atomic<bool> may_look = false;  // the name is given behind the start
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
    const NoThreads none;
    CHECK_FALSE(start_thread("bw-test", [&done](const auto&) { done = true; }).has_value());
  }
  CHECK_FALSE(done);
  CHECK(start_thread("bw-test", [&done](const auto&) { done = true; }).has_value());
  CHECK(done);
}
