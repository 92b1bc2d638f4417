#include "daemon/delivery/feed/plans/planner.h"

#include <doctest/doctest.h>

#include "daemon/delivery/delivery.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What is said of 60 sequences of 1 to 60 frames.
std::string said(const PlanSettings& settings) {
  const TemporaryFolder folder;
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 1; i <= 60; ++i) lengths.push_back(i);
  make_small_dataset(folder / "data", lengths);
  Catalog catalog;
  auto dataset = catalog.open({folder / "data"});
  REQUIRE(dataset);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  FeedSettings feed;
  feed.plan = settings;
  const auto epoch = plan_snapshot(*snapshot, feed, Epoch{0});
  REQUIRE(epoch);
  return describe_sequences(*epoch, settings);
}

PlanSettings batches_of(std::uint32_t size) {
  PlanSettings settings;
  settings.order = Order::sorted;
  settings.size = size;
  return settings;
}

}  // namespace

TEST_CASE("delivery: it is said how many sequences an epoch has, and why it has not all") {
  PlanSettings settings = batches_of(4);
  CHECK(said(settings) == "60 sequences");
  settings.world = 2;
  CHECK(said(settings) == "56 of 60 sequences (4 dropped by remainder)");
  settings.max_length = 50;
  settings.min_length = 3;
  settings.world = 1;
  CHECK(said(settings) == "48 of 60 sequences (12 left out by min_length and max_length)");
  settings = batches_of(16);
  settings.last = LastBatch::drop;
  CHECK(said(settings) == "48 of 60 sequences (12 dropped by last and remainder)");
  settings = batches_of(4);
  settings.select = Select::fixed;
  settings.alpha = 0.5;
  CHECK(said(settings) == "30 of 60 sequences (30 not drawn by select)");
}

TEST_CASE("delivery: chunks are no sequences, and none of them counts as dropped") {
  PlanSettings settings = batches_of(4);
  settings.chunk = 20;
  settings.hop = 20;
  CHECK(said(settings) == "60 sequences");
}
