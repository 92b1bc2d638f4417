#include "daemon/delivery/feed/core/slots/upcoming_batches.h"

#include <doctest/doctest.h>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

UpcomingBatches replica_at(std::uint64_t step) {
  return {Cursor(whole_share(1), Epoch{0}, Step{step}), 10, 10, nullptr, {}};
}

}  // namespace

TEST_CASE("delivery: a rank takes its places of every step") {
  const auto share = rank_share(8, 1, 4);
  REQUIRE(share);
  Cursor cursor(*share, Epoch{2}, Step{1});
  CHECK(cursor.next() == batch(10, 2));
  cursor.advance();
  CHECK(cursor.next() == batch(11, 2));
  cursor.advance();
  CHECK(cursor.next() == batch(18, 2));
  CHECK(cursor.step() == Step{2});
}

TEST_CASE("delivery: the end of an epoch is the step after its last") {
  Cursor cursor(whole_share(2), Epoch{0}, Step{3});
  CHECK(cursor.at_end(3));
  CHECK_FALSE(cursor.at_end(4));
  cursor.begin_next_epoch();
  CHECK(cursor.next() == batch(0, 1));
}

TEST_CASE("delivery: a cursor looks ahead into the next epoch and no further") {
  const Cursor cursor(whole_share(2), Epoch{0}, Step{1});
  CHECK(cursor.ahead(0, 2, 1) == batch(2));
  CHECK(cursor.ahead(1, 2, 1) == batch(3));
  CHECK(cursor.ahead(2, 2, 1) == batch(0, 1));
  CHECK(cursor.ahead(4, 2, 1) == std::nullopt);
}

TEST_CASE("delivery: distance undoes ahead, for every share") {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Cursor cursor(*rank_share(8, rank, 4), Epoch{5}, Step{3});
    for (std::uint64_t d = 0; d < 20; ++d) {
      const auto batch = cursor.ahead(d, 7, 9);
      REQUIRE(batch);
      CHECK(cursor.distance(*batch, 7) == d);
    }
  }
}

TEST_CASE("delivery: a batch that is behind, or another rank's, has no distance") {
  const Cursor cursor(*rank_share(2, 0, 2), Epoch{1}, Step{3});
  CHECK(cursor.distance(batch(4, 1), 9) == std::nullopt);
  CHECK(cursor.distance(batch(7, 1), 9) == std::nullopt);
  CHECK(cursor.distance(batch(8), 9) == std::nullopt);
  CHECK(cursor.distance(batch(0, 3), 9) == std::nullopt);
}

TEST_CASE("delivery: an upcoming goes on into the next epoch, though its next batch never is") {
  UpcomingBatches replica = replica_at(8);
  CHECK(replica.ahead(0) == batch(8));
  CHECK(replica.ahead(2) == batch(0, 1));
  CHECK(!replica_at(10).ahead(0));
  replica.next_steps = 0;
  CHECK(!replica.ahead(2));
  CHECK(replica.distance(batch(9)) == 1);
  CHECK(!replica.distance(batch(7)));
}

TEST_CASE("delivery: rehearsals come before all other batches of an upcoming") {
  UpcomingBatches replica = replica_at(0);
  replica.rehearsals = {batch(7), batch(3)};
  CHECK(replica.ahead(0) == batch(7));
  CHECK(replica.ahead(1) == batch(3));
  CHECK(replica.ahead(2) == batch(0));
  CHECK(replica.distance(batch(3)) == 1);
  CHECK(replica.distance(batch(4)) == 6);
  CHECK(!replica.follows_plan());
}

TEST_CASE("delivery: a queue's upcoming is what the queue has left, of its epoch alone") {
  WorkQueue queue;
  UpcomingBatches worker = replica_at(0);
  worker.queue = &queue;
  queue.give({1}, BatchIndex{0}, {});
  CHECK(worker.ahead(0) == batch(1));
  CHECK(worker.ahead(8) == batch(9));
  CHECK(!worker.ahead(9));
  queue.come_back({1});
  CHECK(worker.ahead(0) == batch(0));
  CHECK(worker.distance(batch(4)) == 4);
  CHECK(!worker.distance(batch(4, 1)));
  queue.begin(Epoch{1});
  CHECK(!worker.ahead(0));
}
