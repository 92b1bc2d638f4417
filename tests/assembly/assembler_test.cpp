#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "tests/assembly/snapshot.h"
#include "tests/assembly/tally.h"

using namespace batchwright;

namespace {

const auto kStyle = std::make_shared<const BatchStyle>(
    BatchStyle{"train", Layout::batch_major, {}, OnCorrupt::stop});

}  // namespace

TEST_CASE("assembly: two threads assemble different batches at once, each into its own slot") {
  const auto source = plan_of(made_up(64), in_order(4));
  const std::uint64_t batches = source->plan.batches();
  REQUIRE(batches == 16);
  std::vector<TestSlot> slots;
  for (std::uint64_t i = 0; i < batches; ++i) slots.emplace_back(std::size_t{1} << 14);
  std::vector<AssembledBatch> assembled(batches);
  {
    Assembler assembler(2);
    for (std::uint64_t i = 0; i < batches; ++i) {
      assembler.submit(source, kStyle, BatchIndex{i}, slots[i].bytes(), [&, i](auto batch) {
        if (batch) assembled[i] = std::move(*batch);
      });
    }
  }  // joins
  TestSlot alone(std::size_t{1} << 14);
  for (std::uint64_t i = 0; i < batches; ++i) {
    const auto wanted = assemble_batch(*source, *kStyle, BatchIndex{i}, alone.bytes());
    REQUIRE(wanted);
    REQUIRE(assembled[i].size == wanted->size);
    CHECK(std::memcmp(slots[i].bytes().data() + assembled[i].offset,
                      alone.bytes().data() + wanted->offset, wanted->size) == 0);
  }
}

TEST_CASE("assembly: one thread takes its jobs in order, and each is answered once") {
  const auto source = plan_of(made_up(20), in_order(2));
  const TestSlot slot(std::size_t{1} << 14);
  Tally tally;
  {
    Assembler assembler(1);
    for (std::uint64_t i = 0; i < 10; ++i) {
      assembler.submit(source, kStyle, BatchIndex{i}, slot.bytes(),
                       [&, i](auto batch) { tally.add(batch ? i : 1000); });
    }
  }
  CHECK(tally.seen() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("assembly: a batch that fails is answered with its error") {
  const auto snapshot = made_up(4);
  snapshot->corrupt = {1};
  const auto source = plan_of(snapshot, in_order(4));
  const TestSlot slot(std::size_t{1} << 14);
  ErrorCode code{};
  {
    Assembler assembler(1);
    assembler.submit(source, kStyle, BatchIndex{0}, slot.bytes(),
                     [&](auto batch) { code = batch.error().code; });
  }
  CHECK(code == ErrorCode::corrupt_record);
}

TEST_CASE("assembly: a number of threads of 0 is one") {
  Tally tally;
  const TestSlot slot(64);
  Assembler assembler(0);
  assembler.poison(slot.bytes(), [&] { tally.add(1); });
  CHECK(tally.wait_for(1));
}

TEST_CASE("assembly: a poisoned slot is 0xDB from end to end") {
  const TestSlot slot(10'000);
  {
    Assembler(1).poison(slot.bytes(), [] {});
  }
  for (const std::byte byte : slot.bytes()) REQUIRE(byte == std::byte{0xDB});
}

TEST_CASE(
    "assembly: work between two jobs is done by an assembly thread, and all of it by the end") {
  std::atomic<int> done = 0;
  std::set<std::thread::id> where;
  {
    Assembler assembler(1);
    for (int i = 0; i < 100; ++i) {
      assembler.do_between(Assembler::Between::plans, [&] {
        ++done;
        where.insert(std::this_thread::get_id());
      });
    }
  }
  CHECK(done == 100);
  CHECK(where.size() == 1);
  CHECK_FALSE(where.contains(std::this_thread::get_id()));
}
