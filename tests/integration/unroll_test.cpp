#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"
#include "tests/support/full_dataset.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint32_t kUnroll = 8;

/// 30 sequences of up to 50 frames on 3 lanes a batch.
struct UnrolledFeed {
  explicit UnrolledFeed(const std::string& plan, const std::string& layout = "batch-major")
      : daemon("layout = \"" + layout + "\"\n[feed.plan]\nlanes = 3\nunroll = 8\nseed = 2\n" + plan,
               0) {
    make_full_dataset(daemon.dataset(), lengths);
  }
  std::vector<std::uint32_t> lengths = mixed_lengths(30, 50);
  DaemonProcess daemon;
};

/// The rows of each lane of the step, step by step; a lane is a row of a place in the world.
using SeenLanes = std::map<std::pair<std::uint64_t, std::size_t>, std::vector<SeenRow>>;

SeenLanes lanes_of(const std::vector<SeenBatch>& batches, std::uint64_t epoch,
                   std::uint64_t world) {
  SeenLanes lanes;
  for (const SeenBatch& batch : batches) {
    if (batch.epoch != epoch) continue;
    for (std::size_t row = 0; row < batch.rows.size(); ++row) {
      auto& lane = lanes[{batch.index % world, row}];
      REQUIRE(lane.size() == batch.step);
      lane.push_back(batch.rows[row]);
    }
  }
  return lanes;
}

/// A lane goes on where it was, begins a sequence with reset in the step after the last of
/// another, and is empty once there is none. Returns the steps it was busy.
std::size_t check_lane(const std::vector<SeenRow>& rows,
                       const std::vector<std::uint32_t>& lengths) {
  std::size_t busy = 0;
  while (busy < rows.size() && rows[busy].length != 0) ++busy;
  for (std::size_t step = 0; step < busy; ++step) {
    const SeenRow& row = rows[step];
    const bool fresh = step == 0 || rows[step - 1].last;
    CHECK(row.reset == fresh);
    CHECK(row.start == (fresh ? 0 : rows[step - 1].start + kUnroll));
    if (!fresh) CHECK(row.ordinal == rows[step - 1].ordinal);
    CHECK(row.length == std::min(kUnroll, lengths[row.ordinal] - row.start));
    CHECK(row.last == (row.start + row.length == lengths[row.ordinal]));
  }
  for (std::size_t step = busy; step < rows.size(); ++step) CHECK(rows[step] == SeenRow{});
  if (busy > 0 && busy < rows.size()) CHECK(rows[busy - 1].last);
  return busy;
}

/// Each lane as it must be, and no sequence begins once a lane was left empty for want of one.
void check_lanes(const SeenLanes& lanes, const std::vector<std::uint32_t>& lengths) {
  std::size_t first_empty = ~std::size_t{0};
  for (const auto& [place, rows] : lanes) {
    first_empty = std::min(first_empty, check_lane(rows, lengths));
  }
  for (const auto& [place, rows] : lanes) {
    for (std::size_t step = first_empty + 1; step < rows.size(); ++step) CHECK(!rows[step].reset);
  }
}

/// The frames of each sequence that came, counted. Rows do not overlap when check_lanes() holds
/// and no sequence begins twice.
std::vector<std::uint32_t> frames_seen(const SeenLanes& lanes, std::size_t sequences) {
  std::vector<std::uint32_t> frames(sequences);
  for (const auto& [place, rows] : lanes) {
    for (const SeenRow& row : rows) frames[row.ordinal] += row.length;
  }
  return frames;
}

}  // namespace

TEST_CASE("integration: lanes go on where they were, never stall, and bring every frame once") {
  for (const std::uint64_t world : {1U, 2U}) {
    UnrolledFeed feed("world = " + std::to_string(world) + "\n");
    REQUIRE(feed.daemon.start());
    const auto batches = take(feed.daemon.endpoint(), {.epochs = 2});
    for (const std::uint64_t epoch : {0U, 1U}) {
      const SeenLanes lanes = lanes_of(batches, epoch, world);
      CHECK(lanes.size() == 3 * world);
      check_lanes(lanes, feed.lengths);
      CHECK(frames_seen(lanes, feed.lengths.size()) == feed.lengths);
    }
    CHECK(lanes_of(batches, 0, world) != lanes_of(batches, 1, world));
  }
}

TEST_CASE("integration: unrolled rows bring the frames they name, in both layouts") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    UnrolledFeed feed("order = \"sorted\"\n", layout);
    REQUIRE(feed.daemon.start());
    const auto batches = take(feed.daemon.endpoint(), {}, check_full_batch);
    CHECK(frames_seen(lanes_of(batches, 0, 1), feed.lengths.size()) == feed.lengths);
  }
}

TEST_CASE("integration: with last = drop no lane is ever empty") {
  UnrolledFeed feed("last = \"drop\"\n");
  REQUIRE(feed.daemon.start());
  UnrolledFeed whole("");
  REQUIRE(whole.daemon.start());
  const auto cut = take(feed.daemon.endpoint(), {});
  const auto all = take(whole.daemon.endpoint(), {});
  REQUIRE(cut.size() < all.size());
  CHECK(std::equal(cut.begin(), cut.end(), all.begin()));
  const auto empty = [](const SeenRow& row) { return row.length == 0; };
  for (const SeenBatch& batch : cut)
    CHECK(std::none_of(batch.rows.begin(), batch.rows.end(), empty));
  const auto& next = all[cut.size()].rows;
  CHECK(std::any_of(next.begin(), next.end(), empty));
}

TEST_CASE("integration: a batch whose lanes have all run out still has its rows") {
  // The long sequence is the first rank's, the short one the second's.
  DaemonProcess daemon("[feed.plan]\nlanes = 1\nunroll = 8\nworld = 2\norder = \"sorted\"\n", 0);
  make_full_dataset(daemon.dataset(), {40, 8});
  REQUIRE(daemon.start());
  const auto batches = take(daemon.endpoint(), {}, check_full_batch);
  REQUIRE(batches.size() == 10);
  CHECK(batches[0].rows == std::vector{SeenRow{0, 0, 8, true, false}});
  CHECK(batches[1].rows == std::vector{SeenRow{1, 0, 8, true, true}});
  for (std::size_t step = 1; step < 5; ++step) {
    CHECK(batches[2 * step + 1].rows == std::vector{SeenRow{}});
  }
}

TEST_CASE("integration: unrolling resumed at any step goes on with the same batches") {
  UnrolledFeed feed("");
  REQUIRE(feed.daemon.start());
  const auto all = take(feed.daemon.endpoint(), {.epochs = 2});
  const auto ends =
      std::find_if(all.begin(), all.end(), [](const auto& b) { return b.epoch == 1; });
  const auto steps = static_cast<std::uint64_t>(ends - all.begin());
  for (const std::uint64_t step : {std::uint64_t{1}, steps / 2, steps - 1, steps}) {
    const auto rest = take(feed.daemon.endpoint(), {.epochs = 2, .step = step});
    CHECK(rest == std::vector(all.begin() + static_cast<std::ptrdiff_t>(step), all.end()));
  }
}

TEST_CASE("integration: each rank's lanes are its own") {
  UnrolledFeed feed("world = 2\n");
  REQUIRE(feed.daemon.start());
  const auto all = take(feed.daemon.endpoint(), {});
  for (const std::int32_t rank : {0, 1}) {
    const auto own = take(feed.daemon.endpoint(), {.rank = rank, .ranks = 2});
    REQUIRE(own.size() == all.size() / 2);
    for (std::size_t step = 0; step < own.size(); ++step) {
      CHECK(own[step] == all[2 * step + static_cast<std::size_t>(rank)]);
    }
  }
}

TEST_CASE("integration: a corrupt sequence leaves its lane empty, and moves no other") {
  // With unroll = 50 each row is a whole sequence, with unroll = 8 a part of one.
  for (const std::string unroll : {"8", "50"}) {
    UnrolledFeed feed("");
    std::string& config = feed.daemon.config();
    config.replace(config.find("unroll = 8"), 10, "unroll = " + unroll);
    REQUIRE(feed.daemon.start());
    auto expected = take(feed.daemon.endpoint(), {});
    for (SeenBatch& batch : expected) {
      for (SeenRow& row : batch.rows) row.length *= row.ordinal != 21;
    }
    feed.daemon.process().signal(SIGTERM);
    REQUIRE(feed.daemon.process().wait() == 0);
    const float value = small_value(21, 3, 1);
    REQUIRE(flip_byte(feed.daemon.dataset() / "data.mdb", &value, sizeof value));
    config.insert(config.find("[feed.plan]"), "on_corrupt = \"skip\"\n");
    REQUIRE(feed.daemon.start());
    CHECK(take(feed.daemon.endpoint(), {}) == expected);
  }
}
