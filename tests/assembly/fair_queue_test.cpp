#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"

using namespace batchwright;
using std::chrono::milliseconds;

namespace {

/// A queue on a clock of its own, and one thread that takes jobs out of it.
class OneThread {
 public:
  void put(const std::string& feed, Urgency urgency, int jobs = 1) {
    for (int i = 0; i < jobs; ++i) {
      queue_.put(
          feed, urgency, [] { return true; }, now_);
    }
  }
  /// Does the next job, which takes so long, and says whose it was; empty when there is none.
  std::string work(milliseconds takes) {
    const auto taken = queue_.take(now_);
    if (!taken) return {};
    pass(takes);
    queue_.done(taken->feed, now_);
    return taken->feed;
  }
  std::string order(int jobs, milliseconds takes) {
    std::string all;
    for (int i = 0; i < jobs; ++i) all += work(takes);
    return all;
  }
  void pass(milliseconds time) { now_ += time; }
  FeedShare share(const std::string& feed) { return queue_.shares(now_)[feed]; }
  FairQueue& queue() { return queue_; }
  FairQueue::Time now() const { return now_; }

 private:
  FairQueue queue_;
  FairQueue::Time now_{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("assembly: the jobs of one feed are taken in order, those waited for first") {
  FairQueue queue;
  std::vector<int> seen;
  const auto job = [&seen](int number) {
    return [&seen, number] {
      seen.push_back(number);
      return true;
    };
  };
  const FairQueue::Time now{};
  queue.put("a", Urgency::ahead, job(1), now);
  queue.put("a", Urgency::ahead, job(2), now);
  queue.put("a", Urgency::demanded, job(3), now);
  while (auto taken = queue.take(now)) {
    taken->work();
    queue.done(taken->feed, now);
  }
  CHECK(seen == std::vector<int>{3, 1, 2});
  CHECK(queue.empty());
}

TEST_CASE("assembly: two feeds get the same time of a thread, however long their jobs take") {
  OneThread thread;
  thread.put("a", Urgency::ahead, 100);
  thread.put("b", Urgency::ahead, 100);
  for (int i = 0; i < 60; ++i) {
    const auto taken = thread.queue().take(thread.now());
    thread.pass(milliseconds(taken->feed == "a" ? 30 : 10));
    thread.queue().done(taken->feed, thread.now());
  }
  const double a = thread.share("a").busy_seconds;
  const double b = thread.share("b").busy_seconds;
  CHECK(a + b == doctest::Approx(0.03 * 15 + 0.01 * 45));
  CHECK(std::abs(a - b) <= 0.03);
}

TEST_CASE("assembly: what is waited for goes before what another feed makes ahead") {
  OneThread thread;
  thread.put("a", Urgency::ahead, 5);
  CHECK(thread.work(milliseconds(10)) == "a");
  thread.put("b", Urgency::demanded, 2);
  CHECK(thread.order(3, milliseconds(10)) == "bba");
}

TEST_CASE("assembly: a feed that is always waited for holds up another for a bounded time only") {
  OneThread thread;
  thread.put("greedy", Urgency::demanded, 1000);
  thread.put("b", Urgency::ahead, 1000);
  std::vector<std::string> order;
  for (int i = 0; i < 100; ++i) order.push_back(thread.work(milliseconds(10)));
  const auto first = std::find(order.begin(), order.end(), "b");
  REQUIRE(first != order.end());
  CHECK((first - order.begin()) * milliseconds(10) <= FairQueue::kHeadStart + milliseconds(10));
  CHECK(thread.share("b").busy_seconds >= 0.5 * (1.0 - 0.12));
}

TEST_CASE("assembly: a job that is under way counts, so its feed does not take every thread") {
  OneThread clock;
  clock.put("slow", Urgency::ahead, 10);
  clock.put("b", Urgency::ahead, 10);
  CHECK(clock.queue().take(clock.now())->feed == "b");  // equal: by name
  CHECK(clock.queue().take(clock.now())->feed == "b");  // no feed has had any time yet
  clock.queue().done("b", clock.now());
  clock.pass(milliseconds(5));
  CHECK(clock.queue().take(clock.now())->feed == "slow");
}

TEST_CASE("assembly: a feed gets no credit for the time in which it wanted nothing") {
  OneThread thread;
  thread.put("a", Urgency::ahead, 100);
  for (int i = 0; i < 50; ++i) REQUIRE(thread.work(milliseconds(10)) == "a");
  thread.put("late", Urgency::ahead, 100);
  int late = 0;
  for (int i = 0; i < 20; ++i) late += thread.work(milliseconds(10)) == "late" ? 1 : 0;
  CHECK(late >= 9);
  CHECK(late <= 11);
}

TEST_CASE("assembly: a feed that waits for a thread knows which feed it waits for") {
  OneThread thread;
  thread.put("slow", Urgency::ahead);
  const auto taken = thread.queue().take(thread.now());
  REQUIRE(taken);
  thread.pass(milliseconds(100));
  thread.put("warm", Urgency::demanded);
  thread.pass(milliseconds(400));
  thread.queue().done("slow", thread.now());
  CHECK(thread.work(milliseconds(10)) == "warm");
  thread.pass(milliseconds(1000));
  const FeedShare warm = thread.share("warm");
  CHECK(warm.busy_seconds == doctest::Approx(0.01));
  CHECK(warm.waiting_seconds == doctest::Approx(0.4));
  REQUIRE(warm.waited_for.size() == 1);
  CHECK(warm.waited_for.at("slow") == doctest::Approx(0.4));
  const FeedShare slow = thread.share("slow");
  CHECK(slow.busy_seconds == doctest::Approx(0.5));
  CHECK(slow.waiting_seconds == doctest::Approx(0.0));
}

namespace {

/// Two threads and a clock; jobs of feed "long" take 50 ms, those of "short" one.
class TwoThreads {
 public:
  void put(const std::string& feed) {
    queue_.put(
        feed, Urgency::demanded, [] { return true; }, now_);
  }
  /// Both threads take what they may, and a millisecond passes.
  void step() {
    for (auto& thread : threads_) {
      if (thread.feed.empty()) {
        if (const auto taken = queue_.take(now_)) {
          thread = {taken->feed, now_ + milliseconds(taken->feed == "long" ? 50 : 1)};
        }
      }
    }
    now_ += milliseconds(1);
    for (auto& thread : threads_) {
      if (thread.feed.empty() || now_ < thread.until) continue;
      queue_.done(thread.feed, now_);
      ++done_[thread.feed];
      thread.feed.clear();
    }
  }
  bool both_at(const std::string& feed) const {
    return threads_[0].feed == feed && threads_[1].feed == feed;
  }
  int done(const std::string& feed) { return done_[feed]; }

 private:
  struct Thread {
    std::string feed;
    FairQueue::Time until{};
  };
  FairQueue queue_{2};
  FairQueue::Time now_{std::chrono::hours(1)};
  Thread threads_[2];
  std::map<std::string, int> done_;
};

}  // namespace

TEST_CASE("assembly: long jobs leave a thread to a feed with short ones, while that is at work") {
  TwoThreads both;
  // One job of each, for what they take is not known before.
  both.put("long");
  both.put("short");
  for (int i = 0; i < 60; ++i) both.step();
  REQUIRE(both.done("long") == 1);
  for (int i = 0; i < 100; ++i) both.put("long");
  // The short feed has nothing for a moment after each of its jobs, like one whose client works.
  const int before = both.done("short");
  for (int i = 0; i < 500; ++i) {
    if (i % 2 == 0) both.put("short");
    both.step();
    CHECK_FALSE(both.both_at("long"));
  }
  CHECK(both.done("short") - before >= 249);
  CHECK(both.done("long") >= 10);
  // When it has gone, long jobs have both threads.
  int shared = 0;
  for (int i = 0; i < 500; ++i) {
    both.step();
    shared += both.both_at("long") ? 1 : 0;
  }
  CHECK(shared > 350);
}

TEST_CASE("assembly: a feed that has lost a thread gets none until it is back") {
  OneThread thread;
  FairQueue& queue = thread.queue();
  thread.put("a", Urgency::demanded, 3);
  REQUIRE(queue.take(thread.now())->feed == "a");
  queue.lose("a", thread.now());
  CHECK(queue.empty());
  CHECK_FALSE(queue.take(thread.now()));
  thread.put("b", Urgency::ahead, 2);
  CHECK_FALSE(queue.empty());
  CHECK(thread.order(2, milliseconds(10)) == "bb");
  queue.find("a", thread.now());
  CHECK(thread.order(2, milliseconds(10)) == "aa");
}

TEST_CASE("assembly: the time of a lost thread is charged to no feed") {
  OneThread thread;
  FairQueue& queue = thread.queue();
  thread.put("a", Urgency::ahead, 20);
  thread.put("b", Urgency::ahead, 20);
  REQUIRE(queue.take(thread.now())->feed == "a");
  thread.pass(milliseconds(100));
  queue.lose("a", thread.now());
  thread.pass(std::chrono::hours(1));
  CHECK(thread.order(4, milliseconds(10)) == "bbbb");
  queue.find("a", thread.now());
  CHECK(thread.share("a").busy_seconds == doctest::Approx(0.1));
  CHECK(thread.share("a").waiting_seconds == doctest::Approx(0.1));
  // It has had 100 ms, and the other 40 ms, and then they take turns.
  CHECK(thread.order(10, milliseconds(10)) == "bbbbbbabab");
}

TEST_CASE(
    "assembly: a feed of the same name has the share of the one before, and not its threads") {
  OneThread thread;
  FairQueue& queue = thread.queue();
  thread.put("a", Urgency::demanded, 3);
  REQUIRE(queue.take(thread.now())->feed == "a");
  thread.pass(milliseconds(100));
  queue.lose("a", thread.now());
  queue.rename("a", "b", thread.now());
  CHECK(queue.empty());
  thread.put("a", Urgency::ahead, 2);
  CHECK(thread.order(2, milliseconds(10)) == "aa");
  CHECK(thread.share("a").busy_seconds == doctest::Approx(0.12));
  queue.find("b", thread.now());
  CHECK(thread.order(2, milliseconds(10)) == "bb");
  CHECK(thread.share("b").busy_seconds == doctest::Approx(0.02));
  queue.rename("nobody", "c", thread.now());
  CHECK(queue.empty());
}
