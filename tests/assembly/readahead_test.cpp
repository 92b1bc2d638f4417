#include <doctest/doctest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/assembly/door.h"
#include "tests/assembly/snapshot.h"
#include "tests/assembly/tally.h"
#include "tests/support/no_threads.h"

using namespace batchwright;

namespace {

std::vector<std::uint64_t> ordinals(const EpochSource& source, std::uint64_t index) {
  std::vector<Row> rows;
  source.plan.rows(BatchIndex{index}, rows);
  std::vector<std::uint64_t> all;
  for (const Row& row : rows) all.push_back(row.ordinal);
  return all;
}

/// Waits until readahead has carried out what it was told.
bool eventually(const Readahead& readahead,
                const std::function<bool(ReadaheadFigures)>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition(readahead.figures())) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// KiB of address space of a thread's stack.
std::size_t stack_kib() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes / 1024;
}

/// Mappings that are as large as a thread's stack.
std::size_t mapped_stacks() {
  const auto maps = file_text("/proc/self/maps").value_or("");
  std::size_t count = 0;
  for (std::string_view line : split_lines(maps)) {
    const auto begin = take_whole<std::uint64_t>(line, 16).value_or(0);
    line.remove_prefix(1);
    const auto end = take_whole<std::uint64_t>(line, 16).value_or(0);
    count += (end - begin) / 1024 == stack_kib() ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("assembly: readahead looks up each sequence of the batch, and brings all of it in") {
  Tally tally;
  const auto snapshot = made_up(12);
  snapshot->on_place = [&](Ordinal ordinal) { tally.add(ordinal.value); };
  const auto source = plan_of(snapshot, in_order(4));
  std::size_t bytes = 0;
  for (const std::uint64_t ordinal : ordinals(*source, 1)) {
    bytes += snapshot->place(Ordinal{ordinal})->bytes.size();
  }
  Readahead readahead;
  readahead.will_need("train", source, BatchIndex{1});
  CHECK(eventually(readahead, [&](const auto& now) { return now.ahead_bytes == bytes; }));
  REQUIRE(tally.wait_for(8));
  const auto seen = tally.seen();
  CHECK(std::vector(seen.begin() + 4, seen.end()) == ordinals(*source, 1));
  readahead.used("train", source, BatchIndex{1});
  CHECK(eventually(readahead, [](const auto& now) { return now.ahead_bytes == 0; }));
}

TEST_CASE("assembly: readers without work end, and others start when there is some") {
  const auto source = plan_of(made_up(100), in_order(1));
  Readahead readahead(nullptr, std::chrono::milliseconds(1));
  for (std::uint64_t i = 0; i < 20; ++i) {
    readahead.will_need("train", source, BatchIndex{i});
    CHECK(eventually(readahead, [](const auto& now) { return now.ahead_bytes != 0; }));
    CHECK(eventually(readahead, [](const auto& now) { return now.disks.at(0).readers == 0; }));
    readahead.used("train", source, BatchIndex{i});
    CHECK(eventually(readahead, [](const auto& now) { return now.ahead_bytes == 0; }));
  }
}

TEST_CASE("assembly: readers that have left leave no stacks behind, however many there were") {
  constexpr std::uint32_t kFrames = 3'000;  // so many that each part is a read of its own
  constexpr std::size_t kMany = 16;
  const auto snapshot = std::make_shared<MadeUpSnapshot>(
      all_kinds(), std::vector<std::uint32_t>(Readahead::kReaders, 2 * kFrames));
  std::mutex gate;
  snapshot->on_record = [&](Ordinal) { const std::lock_guard wait_here(gate); };
  PlanSettings chunks = in_order(1);
  chunks.chunk = kFrames;  // what a record's part needs only the record says: a reader asks it
  const auto source = plan_of(snapshot, chunks);
  Readahead readahead(nullptr, std::chrono::milliseconds(1));
  const std::size_t before = mapped_stacks();
  {
    const std::lock_guard closed(gate);
    for (std::uint64_t i = 0; i < source->plan.batches(); ++i) {
      readahead.will_need("train", source, BatchIndex{i});
    }
    REQUIRE(eventually(readahead, [](const auto& now) {
      return !now.disks.empty() && now.disks.at(0).readers >= kMany;
    }));
  }
  CHECK(eventually(readahead, [](const auto& now) { return now.disks.at(0).readers == 0; }));
  // The last one's own, that of the thread that looks rows up, and what the C library keeps of
  // joined threads for the next ones: 40 MiB.
  const std::size_t most = before + 2 + 40 * 1024 / stack_kib();
  CHECK(eventually(readahead, [most](const auto&) { return mapped_stacks() <= most; }));
}

TEST_CASE("assembly: what no reader could be had for is read once there is one") {
  const auto source = plan_of(made_up(12), in_order(1));
  Readahead readahead;
  {
    const test::NoThreads none;
    readahead.will_need("train", source, BatchIndex{0});
    CHECK(readahead.figures().ahead_bytes == 0);
  }
  readahead.will_need("train", source, BatchIndex{1});
  const std::size_t bytes =
      source->snapshot->place(Ordinal{ordinals(*source, 0).front()})->bytes.size() +
      source->snapshot->place(Ordinal{ordinals(*source, 1).front()})->bytes.size();
  CHECK(eventually(readahead, [&](const auto& now) { return now.ahead_bytes == bytes; }));
}

TEST_CASE("assembly: readahead between an assembler's jobs asks for all, and has no readers") {
  const auto snapshot = made_up(12);
  const auto source = plan_of(snapshot, in_order(4));
  Assembler assembler(1);
  Readahead readahead([&](std::function<void()> work) {
    assembler.do_between(Assembler::Between::look_ups, std::move(work));
  });
  std::size_t bytes = 0;
  for (const std::uint64_t index : {0U, 1U}) {
    readahead.will_need("train", source, BatchIndex{index});
    for (const std::uint64_t ordinal : ordinals(*source, index)) {
      bytes += snapshot->place(Ordinal{ordinal})->bytes.size();
    }
  }
  CHECK(eventually(readahead, [&](const auto& now) { return now.ahead_bytes == bytes; }));
  CHECK(readahead.figures().disks.at(0).readers == 0);
  for (const std::uint64_t index : {0U, 1U}) readahead.used("train", source, BatchIndex{index});
  CHECK(eventually(readahead, [](const auto& now) { return now.ahead_bytes == 0; }));
}

TEST_CASE("assembly: full readahead drops the oldest request and keeps no caller waiting") {
  Tally tally;
  std::mutex gate;
  const auto snapshot = made_up(2 * kReadaheadCapacity);
  snapshot->on_place = [&](Ordinal ordinal) {
    tally.add(ordinal.value);
    const std::lock_guard wait_here(gate);
  };
  const auto source = plan_of(snapshot, in_order(1));
  Readahead readahead;
  {
    const std::lock_guard closed(gate);
    readahead.will_need("train", source, BatchIndex{0});
    REQUIRE(tally.wait_for(1));  // the thread has taken the first request, and stands at the gate
    for (std::uint64_t i = 1; i <= kReadaheadCapacity + 10; ++i) {
      readahead.will_need("train", source, BatchIndex{i});
    }
  }
  REQUIRE(tally.wait_for(1 + kReadaheadCapacity));
  std::vector<std::uint64_t> wanted = ordinals(*source, 0);
  for (std::uint64_t i = 11; i <= kReadaheadCapacity + 10; ++i) {
    wanted.push_back(ordinals(*source, i)[0]);
  }
  CHECK(tally.seen() == wanted);
}

TEST_CASE("assembly: readahead that ends leaves nothing held") {
  const auto source = plan_of(made_up(100), in_order(1));
  {
    Readahead readahead;
    for (std::uint64_t i = 0; i < 50; ++i) readahead.will_need("train", source, BatchIndex{i});
  }
  CHECK(source.use_count() == 1);
}

TEST_CASE("assembly: an epoch that ended is not read, though it was asked for") {
  Tally tally;
  std::mutex gate;
  const auto slow = made_up(4);
  slow->on_place = [&](Ordinal) {
    tally.add(0);
    const std::lock_guard wait_here(gate);
  };
  const auto ended = made_up(4);
  std::atomic<bool> looked_at = false;
  ended->on_place = [&](Ordinal) { looked_at = true; };
  const auto source = plan_of(slow, in_order(1));
  Readahead readahead;
  {
    const std::lock_guard closed(gate);
    readahead.will_need("train", source, BatchIndex{0});
    REQUIRE(tally.wait_for(1));
    readahead.will_need("train", plan_of(ended, in_order(1)), BatchIndex{0});
    readahead.will_need("train", source, BatchIndex{1});
  }
  REQUIRE(tally.wait_for(2));
  CHECK_FALSE(looked_at);
}

TEST_CASE("assembly: a record is let go after its batch where the dataset is larger than memory") {
  Tally gone;
  const auto snapshot = made_up(6);
  snapshot->claimed_bytes = std::uint64_t{1} << 60;
  snapshot->on_let_go = [&](Ordinal ordinal) { gone.add(ordinal.value); };
  const auto source = plan_of(snapshot, in_order(2));
  Readahead readahead([] { return std::size_t{0}; });
  // Feeds are looked up for on threads of their own: the other's wish is known before.
  readahead.will_need("other", source, BatchIndex{1});
  REQUIRE(eventually(readahead, [](const auto& now) { return now.ahead_bytes != 0; }));
  readahead.will_need("train", source, BatchIndex{0});
  readahead.will_need("train", source, BatchIndex{1});
  readahead.used("train", source, BatchIndex{1});  // the other feed still needs these
  readahead.used("train", source, BatchIndex{0});
  REQUIRE(gone.wait_for(2));
  CHECK(gone.seen() == ordinals(*source, 0));
  readahead.used("other", source, BatchIndex{1});
  REQUIRE(gone.wait_for(4));
}

/// Whether another feed is read ahead while a look-up of `hung` stands at the closed door.
bool reads_ahead_beside(const std::shared_ptr<MadeUpSnapshot>& hung, Door& door) {
  const auto silent = plan_of(hung, in_order(4));
  const auto near = plan_of(made_up(8), in_order(4));
  Readahead readahead;
  door.set(false);
  readahead.will_need("far", silent, BatchIndex{0});
  REQUIRE(door.somebody_stands());
  // None of these returns while a lock is held across the question.
  readahead.used("far", silent, BatchIndex{0});
  readahead.will_need("near", near, BatchIndex{0});
  const bool is_ahead = eventually(readahead, [](const auto& now) { return now.ahead_bytes != 0; });
  door.set(true);
  return is_ahead;
}

TEST_CASE("assembly: a file system that does not say how large a file is holds up no other feed") {
  Door door;
  const auto hung = made_up(8);
  hung->on_file_bytes = [&] { door.pass(); };
  CHECK(reads_ahead_beside(hung, door));
}

TEST_CASE("assembly: look-ups of a feed whose pages do not come hold up no other feed's") {
  Door door;
  const auto hung = made_up(8);
  hung->on_place = [&](Ordinal) { door.pass(); };
  CHECK(reads_ahead_beside(hung, door));
}
