#include "daemon/assembly/threads/helper_thread.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/no_threads.h"

using namespace batchwright;

namespace {

/// Waits until the helper has done what it was given before.
void wait_for(HelperThread& helper) {
  std::promise<void> done;
  helper.put([&done] { done.set_value(); });
  done.get_future().wait();
}

}  // namespace

TEST_CASE("helper thread: work is done in its order, elsewhere, by a thread of that name") {
  std::vector<int> order;
  std::thread::id where;
  std::string name(16, '\0');
  HelperThread helper("bw-helper");
  for (int i = 0; i < 100; ++i) helper.put([&order, i] { order.push_back(i); });
  // The name is given after the thread's start.
  helper.put([&] {
    where = std::this_thread::get_id();
    do {
      pthread_getname_np(pthread_self(), name.data(), name.size());
    } while (!name.starts_with("bw-helper"));
  });
  helper.end();
  CHECK(order.size() == 100);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(where != std::thread::id());
  CHECK(where != std::this_thread::get_id());
}

TEST_CASE(
    "helper thread: one that works elsewhere does it there, in its order, and has no thread") {
  std::vector<std::function<void()>> there;
  std::vector<int> order;
  {
    HelperThread helper([&there](std::function<void()> work) { there.push_back(std::move(work)); });
    for (int i = 0; i < 3; ++i) helper.put([&order, i] { order.push_back(i); });
    CHECK(order.empty());
    for (std::size_t call = 0; call < 3; ++call) {
      REQUIRE(there.size() == call + 1);  // one piece of work a call
      const auto work = there.back();
      work();
      CHECK(order.size() == call + 1);
    }
    helper.put([&order] { order.push_back(3); });
    helper.drop();
    REQUIRE(there.size() == 4);
    const auto work = there.back();
    work();
  }
  CHECK(order == std::vector{0, 1, 2});
}

TEST_CASE("helper thread: its end waits for what is done elsewhere") {
  std::atomic<int> done = 0;
  std::mutex mutex;
  std::vector<std::thread> others;
  {
    HelperThread helper([&](std::function<void()> work) {
      const std::lock_guard lock(mutex);  // threads of it call it, too
      others.emplace_back(std::move(work));
    });
    for (int i = 0; i < 100; ++i) helper.put([&done] { ++done; });
    helper.end();
    CHECK(done == 100);
  }
  for (std::thread& other : others) other.join();
}

TEST_CASE("helper thread: it leaves when there is no work, and comes back for more") {
  std::atomic<int> entered = 0;
  HelperThread helper(
      "bw-helper", [&entered] { ++entered; }, std::chrono::milliseconds(0));
  for (int i = 1; i <= 50; ++i) {
    wait_for(helper);
    // Sooner or later the one that did it has left, and another comes.
    while (entered == i) wait_for(helper);
  }
  CHECK(entered > 50);
}

TEST_CASE("helper thread: one that lingers is the same for all") {
  int entered = 0;
  HelperThread helper("bw-helper", [&entered] { ++entered; });
  for (int i = 0; i < 50; ++i) wait_for(helper);
  helper.end();
  CHECK(entered == 1);
}

TEST_CASE("helper thread: what is dropped is not done, and nothing keeps what it held") {
  std::promise<void> hold;
  std::atomic<int> done = 0;
  const auto held = std::make_shared<int>(1);
  HelperThread helper("bw-helper");
  helper.put([waited = hold.get_future(), &done] {
    waited.wait();
    ++done;
  });
  for (int i = 0; i < 10; ++i) helper.put([held, &done] { ++done; });
  helper.drop();
  CHECK(held.use_count() == 1);
  hold.set_value();
  helper.end();
  CHECK(held.use_count() == 1);
  CHECK(done <= 1);
}

TEST_CASE("helper thread: where no thread is to be had, the work is done at once") {
  std::thread::id where;
  HelperThread helper("bw-helper");
  {
    const test::NoThreads none;
    helper.put([&where] { where = std::this_thread::get_id(); });
  }
  CHECK(where == std::this_thread::get_id());
  helper.put([&where] { where = std::this_thread::get_id(); });
  helper.end();
  CHECK(where != std::this_thread::get_id());
}
