// One feed's disk is slow: what that costs others.

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

/// A door that reads of a dataset stand at while it is shut.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++standing_;
    since_ = std::chrono::steady_clock::now();
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || admitted_ > 0; });
    if (!open_) --admitted_;
    --standing_;
  }
  void set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  bool somebody_stands() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return standing_ > 0; });
  }
  /// One read gets through a shut door, once it has waited as long as for a disk.
  void admit_one() {
    std::unique_lock lock(mutex_);
    const auto long_enough = since_ + std::chrono::milliseconds(20);
    changed_.wait_until(lock, long_enough,
                        [&] { return std::chrono::steady_clock::now() >= long_enough; });
    ++admitted_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point since_;  ///< When somebody came to stand here last.
  int standing_ = 0;
  int admitted_ = 0;
  bool open_ = true;
};

/// A feed with batches of one sequence each, made one after the other.
class TestFeed {
 public:
  TestFeed(std::string name, std::shared_ptr<MadeUpSnapshot> snapshot)
      : style_(std::make_shared<const BatchStyle>(
            BatchStyle{std::move(name), Layout::batch_major, {}, OnCorrupt::stop, times_})),
        source_(plan_of(std::move(snapshot), in_order(1))) {}

  void submit(Assembler& assembler, std::uint64_t index) {
    const std::uint64_t batches = source_->plan.batches();
    assembler.submit(source_, style_, BatchIndex{index % batches}, slot_.bytes(), [this](auto) {
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
  TestSlot slot_{std::size_t{1} << 14};
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_ = 0;
  int wanted_ = 0;
};

std::shared_ptr<MadeUpSnapshot> snapshot() {
  return std::make_shared<MadeUpSnapshot>(all_kinds(), std::vector<std::uint32_t>(20, 30));
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
  // Until a batch is assembled without having been fetched.
  while (turning.times().of(Stage::fetch).count() == turning.times().of(Stage::assemble).count()) {
    REQUIRE(turning.make(assembler, 1));
  }
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
