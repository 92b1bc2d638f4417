#include <doctest/doctest.h>

#include <vector>

#include "tests/assembly/snapshot.h"
#include "tests/assembly/tally.h"

using namespace batchwright;

namespace {

std::vector<Row> rows_of(const EpochSource& source, std::uint64_t index) {
  std::vector<Row> rows;
  source.plan.rows(BatchIndex{index}, rows);
  return rows;
}

/// Of batch `index`: what readahead asks for.
RowPlaces find(const EpochSource& source, std::uint64_t index) {
  return source.found->find(*source.snapshot, BatchIndex{index}, rows_of(source, index));
}

AssembledBatch assembled(const EpochSource& source, std::uint64_t index, const TestSlot& slot) {
  auto batch = assemble_batch(source, {"train", Layout::batch_major, {}, OnCorrupt::stop},
                              BatchIndex{index}, slot.bytes());
  REQUIRE(batch);
  return *batch;
}

}  // namespace

TEST_CASE("assembly: what readahead has looked up is not looked up again") {
  Tally tally;
  const auto snapshot = made_up(12);
  const auto source = plan_of(snapshot, in_order(4));
  const TestSlot slot(std::size_t{1} << 20);
  snapshot->on_place = [&](Ordinal ordinal) { tally.add(ordinal.value); };
  CHECK(find(*source, 1).size() == 4);
  CHECK(find(*source, 1).size() == 4);
  REQUIRE(tally.seen().size() == 4);
  const AssembledBatch batch = assembled(*source, 1, slot);
  CHECK(tally.seen().size() == 4);
  CHECK(batch_in(slot, batch).ordinals()->Get(0) == rows_of(*source, 1)[0].ordinal);
  // What was not looked up is looked up once.
  assembled(*source, 2, slot);
  CHECK(tally.seen().size() == 8);
}

TEST_CASE("assembly: a batch that was assembled is forgotten, and may be assembled again") {
  Tally tally;
  const auto snapshot = made_up(12);
  const auto source = plan_of(snapshot, in_order(4));
  const TestSlot slot(std::size_t{1} << 20);
  find(*source, 1);
  assembled(*source, 1, slot);
  snapshot->on_place = [&](Ordinal ordinal) { tally.add(ordinal.value); };
  // Of batches up to it nothing is remembered, for they may never be assembled.
  for (int i = 0; i < 2; ++i) find(*source, 0);
  CHECK(tally.seen().size() == 8);
  assembled(*source, 1, slot);
  CHECK(tally.seen().size() == 12);
}

TEST_CASE("assembly: the places of so many batches are remembered, the first ones") {
  Tally tally;
  const auto snapshot = made_up(RowLocations::kMost + 2);
  const auto source = plan_of(snapshot, in_order(1));
  for (std::uint64_t i = 0; i < RowLocations::kMost + 2; ++i) find(*source, i);
  snapshot->on_place = [&](Ordinal ordinal) { tally.add(ordinal.value); };
  for (std::uint64_t i = 0; i < RowLocations::kMost + 2; ++i) find(*source, i);
  CHECK(tally.seen() ==
        std::vector<std::uint64_t>{rows_of(*source, RowLocations::kMost)[0].ordinal,
                                   rows_of(*source, RowLocations::kMost + 1)[0].ordinal});
}
