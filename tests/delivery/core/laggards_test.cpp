#include "tests/delivery/core/laggards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/delivery/core/virtual_feed.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Both take all batches, one at a time. The slow one's first ticket, which it holds.
wire::DeliveryT join_both(VirtualClient& slow, VirtualClient& fast) {
  REQUIRE(join(slow, one_at_a_time()));
  REQUIRE(join(fast, one_at_a_time()));
  const auto first = next_ticket(slow);
  REQUIRE(first);
  return *first;
}

bool is_left_behind(VirtualFeed& feed) {
  const auto& all = feed.core().parts().subscriptions.all();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& entry) { return entry.second.straggler.left_behind; });
}

}  // namespace

TEST_CASE("delivery: a client that runs ahead waits for a straggler, and each batch is made once") {
  VirtualFeed feed(few_slots(std::chrono::hours(1)), 4 * kEpochBatches);
  VirtualClient slow(feed);
  VirtualClient fast(feed);
  const wire::DeliveryT first = join_both(slow, fast);
  // The slots hold what the slow one has and needs, and nothing is made that would push it out.
  const std::uint64_t ahead = run_ahead(fast);
  CHECK(ahead == 8);
  CHECK_FALSE(is_left_behind(feed));
  slow.send(release_of(first));
  for (std::uint64_t i = 1; i < ahead; ++i) CHECK(take_one(slow) == i);
  for (std::uint64_t i = ahead; i < kEpochBatches; ++i) {
    CHECK(take_one(fast) == i);
    CHECK(take_one(slow) == i);
  }
  CHECK(feed.count(FeedCounter::batches_assembled) == kEpochBatches);
}

TEST_CASE("delivery: patience with a straggler ends, and both get the whole epoch") {
  VirtualFeed feed(few_slots(std::chrono::milliseconds(1)), 4 * kEpochBatches);
  VirtualClient slow(feed);
  VirtualClient fast(feed);
  const wire::DeliveryT first = join_both(slow, fast);
  for (std::uint64_t i = 0; i < 12; ++i) CHECK(take_one(fast) == i);
  CHECK(is_left_behind(feed));
  slow.send(release_of(first));
  for (std::uint64_t i = 1; i < 12; ++i) CHECK(take_one(slow) == i);
  // It has caught up, and would be waited for again.
  CHECK(feed.eventually([&feed] { return !is_left_behind(feed); }));
  for (std::uint64_t i = 12; i < kEpochBatches; ++i) {
    CHECK(take_one(fast) == i);
    CHECK(take_one(slow) == i);
  }
  CHECK(feed.count(FeedCounter::batches_reassembled) > 0);
}

TEST_CASE("delivery: patience ends also where a step has more batches than there are slots") {
  FeedSettings settings = few_slots(std::chrono::milliseconds(1));
  settings.plan.world = 20;
  VirtualFeed feed(settings, 4 * kEpochBatches);
  VirtualClient slow(feed);
  VirtualClient fast(feed);
  join_both(slow, fast);
  for (std::uint64_t i = 0; i < kEpochBatches; ++i) CHECK(take_one(fast) == i);
}

TEST_CASE("delivery: a client that leaves is waited for no more") {
  VirtualFeed feed(few_slots(std::chrono::hours(1)), 4 * kEpochBatches);
  VirtualClient slow(feed);
  VirtualClient fast(feed);
  join_both(slow, fast);
  std::uint64_t next = run_ahead(fast);
  slow.die();
  while (next < kEpochBatches) CHECK(take_one(fast) == next++);
}

TEST_CASE("delivery: a queue does not wait for a replica that stands still") {
  const TemporaryFolder folder;
  FeedSettings settings = few_slots(std::chrono::hours(1));
  settings.journal = folder / "journal";
  VirtualFeed feed(settings, 4 * kEpochBatches);
  VirtualClient replica(feed);
  VirtualClient worker(feed);
  REQUIRE(join(replica, one_at_a_time()));
  REQUIRE(next_ticket(replica));
  auto subscribe = one_at_a_time();
  subscribe.mode = wire::Mode::queue;
  REQUIRE(join(worker, std::move(subscribe)));
  for (std::uint64_t i = 0; i < kEpochBatches; ++i) CHECK(take_one(worker) == i);
}
