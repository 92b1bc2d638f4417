#include "daemon/assembly/sources/row_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "tests/assembly/snapshot.h"
#include "tests/assembly/tally.h"

using namespace batchwright;

namespace {

CachedRow row_of(std::size_t bytes) {
  std::vector<MadeField> row(1);
  row[0].bytes.assign(bytes, std::byte{7});
  return std::make_shared<const std::vector<MadeField>>(std::move(row));
}

/// Makes rows of as many bytes, and counts them.
struct Maker {
  std::size_t bytes = 100;
  std::atomic<int> made{0};

  Result<CachedRow> operator()() {
    ++made;
    return row_of(bytes);
  }
};

/// How many rows are made when one more part of a row is asked for.
int made_for(RowCache& rows, std::uint64_t ordinal, bool last = false) {
  Maker maker;
  CHECK(rows.get({ordinal, 0}, {last}, std::ref(maker)));
  return maker.made;
}

}  // namespace

TEST_CASE("assembly: a row is made for its first part, and kept until its last one") {
  RowCache rows;
  CHECK(made_for(rows, 3) == 1);
  CHECK(made_for(rows, 3) == 0);
  CHECK(made_for(rows, 4) == 1);
  CHECK(made_for(rows, 3, true) == 0);
  CHECK(made_for(rows, 4, true) == 0);
  CHECK(made_for(rows, 3) == 1);
  // The first part may be the last one, too: the rest came from another daemon.
  CHECK(made_for(rows, 9, true) == 1);
  CHECK(made_for(rows, 9) == 1);
}

TEST_CASE("assembly: a row that the epoch has again is another row") {
  RowCache rows;
  Maker maker;
  CHECK(rows.get({3, 0}, {}, std::ref(maker)));
  CHECK(rows.get({3, 1}, {}, std::ref(maker)));
  CHECK(maker.made == 2);
  // The end of one leaves the other.
  CHECK(rows.get({3, 0}, {true}, std::ref(maker)));
  CHECK(rows.get({3, 1}, {true}, std::ref(maker)));
  CHECK(maker.made == 2);
}

TEST_CASE("assembly: rows that find no room are made for each part, and those that did stay") {
  RowCache rows(250);
  for (const std::uint64_t ordinal : {0U, 1U, 2U}) CHECK(made_for(rows, ordinal) == 1);
  for (int turn = 0; turn < 50; ++turn) {
    CHECK(made_for(rows, 0) == 0);
    CHECK(made_for(rows, 1) == 0);
    CHECK(made_for(rows, 2) == 1);
  }
  CHECK(made_for(rows, 0, true) == 0);
  CHECK(made_for(rows, 2) == 1);
  CHECK(made_for(rows, 2) == 0);
}

TEST_CASE("assembly: rows that no batch asks for any more make room") {
  RowCache rows(250);
  made_for(rows, 0);
  made_for(rows, 1);
  int made = 0;
  for (int turn = 0; turn < 200; ++turn) made += made_for(rows, 2) + made_for(rows, 3);
  CHECK(made < 200);
  CHECK(made_for(rows, 2) + made_for(rows, 3) == 0);
  CHECK(made_for(rows, 0) == 1);
}

TEST_CASE("assembly: a row that cannot be made is tried again for each request") {
  RowCache rows;
  const auto fail = []() -> Result<CachedRow> {
    return Error{ErrorCode::corrupt_record, "broken"};
  };
  const auto throwing = []() -> Result<CachedRow> { throw std::runtime_error("no memory"); };
  CHECK(rows.get({1, 0}, {}, fail).error().message == "broken");
  CHECK(rows.get({1, 0}, {}, throwing).error().message == "no memory");
  CHECK(made_for(rows, 1) == 1);
}

TEST_CASE("assembly: a thread waits for a row that another makes, whatever becomes of it") {
  for (const bool works : {true, false}) {
    RowCache rows;
    Tally begun;
    Tally go;
    Maker second;
    std::jthread first([&] {
      const auto row = rows.get({5, 0}, {true}, [&]() -> Result<CachedRow> {
        begun.add(1);
        CHECK(go.wait_for(1));
        if (!works) return Error{ErrorCode::corrupt_record, "broken"};
        return row_of(10);
      });
      CHECK(static_cast<bool>(row) == works);
    });
    REQUIRE(begun.wait_for(1));
    std::jthread other([&] { CHECK(rows.get({5, 0}, {}, std::ref(second))); });
    go.add(1);
    first.join();
    other.join();
    // The second may have come when the first had made its row and gone.
    CHECK(second.made <= 1);
  }
}

TEST_CASE("assembly: threads that take the parts of many rows get the same rows") {
  RowCache rows(5000);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&rows] {
      for (std::uint64_t part = 0; part < 40; ++part) {
        for (std::uint64_t ordinal = 0; ordinal < 30; ++ordinal) {
          const auto row = rows.get({ordinal, 0}, {part == 39}, [ordinal]() -> Result<CachedRow> {
            return row_of(ordinal * 20);
          });
          REQUIRE(row);
          CHECK((**row)[0].bytes.size() == ordinal * 20);
        }
      }
    });
  }
}

TEST_CASE("assembly: chunks in any order make a row once") {
  RowCache rows;
  Maker maker;
  // The last one is not the last that comes.
  for (const bool last : {false, true, false, false}) {
    CHECK(rows.get({3, 0}, {last, 4}, std::ref(maker)));
  }
  CHECK(maker.made == 1);
  // Another epoch starts over.
  CHECK(rows.get({3, 0}, {false, 4}, std::ref(maker)));
  CHECK(maker.made == 2);
}

TEST_CASE("assembly: epochs share a budget, and give back what they took") {
  const auto budget = std::make_shared<MemoryBudget>(250);
  RowCache first(budget);
  {
    RowCache second(budget);
    CHECK(made_for(first, 0) == 1);
    CHECK(made_for(second, 0) == 1);
    CHECK(budget->left() == 50);
    CHECK(made_for(first, 1) == 1);
    CHECK(made_for(first, 1) == 1);  // no room
    CHECK(made_for(second, 0, true) == 0);
    CHECK(made_for(second, 4) == 1);
    CHECK(budget->left() == 50);
  }
  CHECK(budget->left() == 150);
  CHECK(made_for(first, 1) == 1);
  CHECK(made_for(first, 1) == 0);
}

TEST_CASE("assembly: lanes make each row once") {
  const auto snapshot = std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {3}),
                                                         std::vector<std::uint32_t>{12, 12});
  RecipeSettings stacks;
  stacks.stacking.stack = 2;
  Catalog catalog;
  const auto recipe = Recipe::open(stacks, *snapshot, 0, catalog);
  REQUIRE_MESSAGE(recipe, recipe.error().message);
  const BatchStyle style{"train", Layout::batch_major, {}, OnCorrupt::stop};
  PlanSettings settings;
  settings.order = Order::random;
  settings.lanes = 1;
  settings.unroll = 4;
  const auto source = plan_of(snapshot, settings);
  source->has_parts = true;
  REQUIRE(source->plan.batches() == 6);
  const auto lengths = (*recipe)->lengths(*snapshot, source->epoch);
  REQUIRE(lengths);
  const RecipeSource made_source(source, *recipe, *lengths, DrawKeys(),
                                 std::make_shared<RowCache>());
  const TestSlot slot(1 << 16);
  std::vector<bool> made;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto batch = assemble_batch(made_source, style, BatchIndex{i}, slot.bytes());
    REQUIRE_MESSAGE(batch, batch.error().message);
    const auto& seconds = batch->made.step_seconds;
    made.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0) > 0);
    // Frame by frame: the stored one, and the next, or the last one again.
    const auto frames = payload(batch_in(slot, *batch), 0);
    Row row = [&] {
      std::vector<Row> rows;
      source->plan.rows(BatchIndex{i}, rows);
      return rows.at(0);
    }();
    const auto stored = snapshot->content(row.ordinal, 0);
    const std::uint32_t last = snapshot->lengths()[row.ordinal] - 1;
    for (std::uint32_t t = 0; t < row.length; ++t) {
      for (std::uint32_t beside = 0; beside < 2; ++beside) {
        const std::uint32_t from = std::min(row.start + t + beside, last);
        CHECK(std::ranges::equal(frames.subspan((2 * t + beside) * 12, 12),
                                 stored.subspan(from * 12, 12)));
      }
    }
  }
  CHECK(made == std::vector<bool>{true, false, false, true, false, false});
}
