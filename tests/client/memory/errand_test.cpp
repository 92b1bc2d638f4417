#include "client/library/memory/errand.h"

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("client: an errand is done once, and behind finish() it is done") {
  Errand errand;
  int done = 0;
  for (int i = 1; i <= 1000; ++i) {
    errand.begin([&done] { ++done; });
    errand.finish();
    REQUIRE(done == i);
  }
  errand.finish();
  CHECK(done == 1000);
}

TEST_CASE("client: an errand is done beside its caller, and keeps nothing behind it") {
  Errand errand;
  std::promise<std::thread::id> by;
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> left = kept;
  errand.begin([&by, kept = std::move(kept)] { by.set_value(std::this_thread::get_id()); });
  CHECK(by.get_future().get() != std::this_thread::get_id());
  CHECK(eventually([&left] { return left.expired(); }));
}

TEST_CASE("client: the end of an errand waits for what is being done") {
  std::atomic<bool> begun = false;
  std::promise<void> go_on;
  bool done = false;
  std::thread helper;
  {
    Errand errand;
    errand.begin([&, goes_on = go_on.get_future().share()] {
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

TEST_CASE("client: an errand's thread takes none of the program's signals") {
  Errand errand;
  std::promise<bool> blocked;
  errand.begin([&blocked] {
    sigset_t now{};
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    blocked.set_value(sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGUSR1) == 1);
  });
  CHECK(blocked.get_future().get());
}
