#include "client/library/memory/background_task.h"

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("client: a task is done once, and after finish() it is done") {
  BackgroundTask task;
  int done = 0;
  for (int i = 1; i <= 1000; ++i) {
    task.begin([&done] { ++done; });
    task.finish();
    REQUIRE(done == i);
  }
  task.finish();
  CHECK(done == 1000);
}

TEST_CASE("client: a task is done beside its caller, and keeps nothing afterwards") {
  BackgroundTask task;
  std::promise<std::thread::id> by;
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> left = kept;
  task.begin([&by, kept = std::move(kept)] { by.set_value(std::this_thread::get_id()); });
  CHECK(by.get_future().get() != std::this_thread::get_id());
  CHECK(eventually([&left] { return left.expired(); }));
}

TEST_CASE("client: the end of an task waits for what is being done") {
  std::atomic<bool> begun = false;
  std::promise<void> go_on;
  bool done = false;
  std::thread helper;
  {
    BackgroundTask task;
    task.begin([&, goes_on = go_on.get_future().share()] {
      begun = true;
      goes_on.wait();
      done = true;
    });
    REQUIRE(eventually([&begun] { return begun.load(); }));
    helper = std::thread([&go_on] { go_on.set_value(); });
  }
  helper.join();
  CHECK(done);
}

TEST_CASE("client: an task's thread takes none of the program's signals") {
  BackgroundTask task;
  std::promise<bool> blocked;
  task.begin([&blocked] {
    sigset_t now{};
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    blocked.set_value(sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGUSR1) == 1);
  });
  CHECK(blocked.get_future().get());
}
