// One feed's disk is slow: what that costs others.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/assembly/door.h"
#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

/// A feed with batches of one sequence each.
class TestFeed {
 public:
  TestFeed(std::string name, std::shared_ptr<MadeUpSnapshot> snapshot)
      : style_(std::make_shared<const BatchStyle>(
            BatchStyle{std::move(name), Layout::batch_major, {}, OnCorrupt::stop, times_})),
        source_(plan_of(std::move(snapshot), in_order(1))) {}

  void submit(Assembler& assembler, std::uint64_t index) {
    const std::uint64_t batches = source_->plan.batches();
    // Each batch under way has a slot of its own.
    if (static_cast<std::size_t>(done()) == submitted_) slots_.clear();
    ++submitted_;
    const TestSlot& slot = slots_.emplace_back(std::size_t{1} << 14);
    assembler.submit(source_, style_, BatchIndex{index % batches}, slot.bytes(), [this](auto) {
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    });
  }
  bool wait_for(int done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return done_ >= done; });
  }
  /// One batch after the other.
  bool make(Assembler& assembler, int batches) {
    for (int i = 0; i < batches; ++i) {
      submit(assembler, static_cast<std::uint64_t>(i));
      if (!wait_for(++wanted_)) return false;
    }
    return true;
  }
  int done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  const StageTimes& times() const { return *times_; }

 private:
  std::shared_ptr<StageTimes> times_ = std::make_shared<StageTimes>();
  std::shared_ptr<const BatchStyle> style_;
  std::shared_ptr<EpochSource> source_;
  std::deque<TestSlot> slots_;
  std::size_t submitted_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_ = 0;
  int wanted_ = 0;
};

std::shared_ptr<MadeUpSnapshot> snapshot() {
  return std::make_shared<MadeUpSnapshot>(all_kinds(), std::vector<std::uint32_t>(20, 30));
}

/// Until a batch is assembled without having been fetched.
bool warm_up(TestFeed& feed, Assembler& assembler) {
  while (feed.times().of(Stage::fetch).count() == feed.times().of(Stage::assemble).count()) {
    if (!feed.make(assembler, 1)) return false;
  }
  return true;
}

/// Looks at the threads until `holds`.
template <class Holds>
bool look_until(Assembler& assembler, Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    const auto now = std::chrono::steady_clock::now();
    if (now > end) return false;
    assembler.look(now);
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("assembly: a feed whose pages do not come delays no other, with one thread for both") {
  Door door;
  const auto slow_data = snapshot();
  slow_data->on_record = [&](Ordinal) { door.pass(); };
  TestFeed slow("slow", slow_data);
  TestFeed warm("warm", snapshot());
  Assembler assembler(1);
  door.set(false);
  for (std::uint64_t i = 0; i < 3; ++i) slow.submit(assembler, i);
  REQUIRE(door.somebody_stands());
  CHECK(warm.make(assembler, 100));
  CHECK(slow.done() == 0);
  CHECK(assembler.shares()["warm"].waited_for["slow"] < 0.001);
  door.set(true);
  CHECK(slow.wait_for(3));
  CHECK(slow.times().storage_wait_seconds() > 0.0);
  CHECK(slow.times().of(Stage::fetch).count() == 3);
}

TEST_CASE("assembly: a feed whose pages are there is not fetched for any more") {
  TestFeed warm("warm", snapshot());
  Assembler assembler(1);
  REQUIRE(warm.make(assembler, 200));
  CHECK(warm.times().of(Stage::fetch).count() < 100);
  CHECK(warm.times().of(Stage::assemble).count() == 200);
}

TEST_CASE("assembly: a feed that turns cold takes one batch's time of a thread, and no more") {
  Door door;
  const auto data = snapshot();
  data->on_record = [&](Ordinal) { door.pass(); };
  TestFeed turning("turning", data);
  TestFeed warm("warm", snapshot());
  Assembler assembler(1);
  REQUIRE(warm_up(turning, assembler));
  const int before = turning.done();
  door.set(false);
  for (std::uint64_t i = 0; i < 4; ++i) turning.submit(assembler, i);
  REQUIRE(door.somebody_stands());  // the assembly thread
  door.admit_one();
  REQUIRE(turning.wait_for(before + 1));
  REQUIRE(door.somebody_stands());  // the feed's own
  CHECK(warm.make(assembler, 50));
  CHECK(turning.done() == before + 1);
  door.set(true);
  CHECK(turning.wait_for(before + 4));
}

TEST_CASE("assembly: the end of the assembler waits for what is being fetched, too") {
  Door door;
  const auto data = snapshot();
  data->on_record = [&](Ordinal) { door.pass(); };
  TestFeed slow("slow", data);
  {
    Assembler assembler(1);  // all batches go into one slot
    for (std::uint64_t i = 0; i < 5; ++i) slow.submit(assembler, i);
  }
  CHECK(slow.done() == 5);
}

TEST_CASE("assembly: threads whose pages do not come are lost to their feed, which gets no other") {
  for (const unsigned threads : {1U, 2U, 3U}) {
    CAPTURE(threads);
    Door door;
    const auto data = snapshot();
    data->on_record = [&](Ordinal) { door.pass(); };
    TestFeed hung("hung", data);
    TestFeed warm("warm", snapshot());
    Assembler assembler(threads);
    REQUIRE(warm_up(hung, assembler));
    REQUIRE(warm.make(assembler, 20));
    const int before = hung.done();
    door.set(false);
    for (std::uint64_t i = 0; i < 8; ++i) hung.submit(assembler, i);
    REQUIRE(door.wait_for_standing(static_cast<int>(threads)));
    CHECK_FALSE(assembler.waits_for_pages("warm").has_value());
    const int warm_before = warm.done();
    for (std::uint64_t i = 0; i < 50; ++i) warm.submit(assembler, i);
    CHECK(look_until(assembler, [&] { return warm.done() == warm_before + 50; }));
    CHECK(assembler.waits_for_pages("hung").has_value());
    CHECK(door.standing() == static_cast<int>(threads));
    CHECK(hung.done() == before);
    door.set(true);
    CHECK(hung.wait_for(before + 8));
    CHECK_FALSE(assembler.waits_for_pages("hung").has_value());
    warm.submit(assembler, 0);
    CHECK(warm.wait_for(warm_before + 51));
  }
}

TEST_CASE("assembly: a feed in the place of one that waits for pages does not wait for them") {
  for (const bool is_cold : {true, false}) {  // a thread of the feed's own waits, or all others do
    CAPTURE(is_cold);
    Door door;
    const auto data = snapshot();
    data->on_record = [&](Ordinal) { door.pass(); };
    TestFeed before("feed", data);
    TestFeed after("feed", snapshot());
    Assembler assembler(2);
    REQUIRE((is_cold || warm_up(before, assembler)));
    const int done = before.done();
    door.set(false);
    for (std::uint64_t i = 0; i < 4; ++i) before.submit(assembler, i);
    REQUIRE(look_until(assembler, [&] { return assembler.waits_for_pages("feed").has_value(); }));
    assembler.replace("feed");
    CHECK_FALSE(assembler.waits_for_pages("feed").has_value());
    for (std::uint64_t i = 0; i < 50; ++i) after.submit(assembler, i);
    CHECK(look_until(assembler, [&] { return after.done() == 50; }));
    CHECK(before.done() == done);
    door.set(true);
    CHECK(before.wait_for(done + 4));
  }
}

TEST_CASE("assembly: pages that a feed's own thread waits for are told of, too") {
  Door door;
  const auto data = snapshot();
  data->on_record = [&](Ordinal) { door.pass(); };
  TestFeed cold("cold", data);
  Assembler assembler(1);
  door.set(false);
  cold.submit(assembler, 0);
  CHECK(look_until(assembler, [&] { return assembler.waits_for_pages("cold").has_value(); }));
  door.set(true);
  CHECK(cold.wait_for(1));
  CHECK_FALSE(assembler.waits_for_pages("cold").has_value());
}

TEST_CASE("assembly: a thread that computes for long is not lost") {
  const auto data = snapshot();
  std::atomic<bool> enough = false;
  data->on_record = [&](Ordinal) {
    while (!enough) {
    }
  };
  TestFeed busy("busy", data);
  Assembler assembler(1);
  busy.submit(assembler, 0);
  const auto end = std::chrono::steady_clock::now() + 5 * Assembler::kLost;
  CHECK(look_until(assembler, [&] { return std::chrono::steady_clock::now() > end; }));
  CHECK_FALSE(assembler.waits_for_pages("busy").has_value());
  enough = true;
  CHECK(busy.wait_for(1));
}

TEST_CASE("assembly: an observer is called once work begins, and told when there is none") {
  TestFeed feed("feed", snapshot());
  Assembler assembler(1);
  int begun = 0;
  assembler.on_begun([&] { ++begun; });
  CHECK_FALSE(assembler.look(std::chrono::steady_clock::now()));
  REQUIRE(feed.make(assembler, 1));
  CHECK(begun >= 1);
  CHECK(look_until(assembler, [&] { return !assembler.look(std::chrono::steady_clock::now()); }));
}
