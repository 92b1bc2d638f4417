#include "daemon/delivery/feed/slots/itinerary.h"

#include <doctest/doctest.h>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Itinerary replica_at(std::uint64_t step) {
  return {Cursor(whole_share(1), Epoch{0}, Step{step}), 10, 10, nullptr, {}};
}

}  // namespace

TEST_CASE("delivery: an itinerary goes on into the next epoch, though its next batch never is") {
  Itinerary replica = replica_at(8);
  CHECK(replica.ahead(0) == batch(8));
  CHECK(replica.ahead(2) == batch(0, 1));
  CHECK(!replica_at(10).ahead(0));
  replica.next_steps = 0;
  CHECK(!replica.ahead(2));
  CHECK(replica.distance(batch(9)) == 1);
  CHECK(!replica.distance(batch(7)));
}

TEST_CASE("delivery: rehearsals come before all other batches of an itinerary") {
  Itinerary replica = replica_at(0);
  replica.rehearsals = {batch(7), batch(3)};
  CHECK(replica.ahead(0) == batch(7));
  CHECK(replica.ahead(1) == batch(3));
  CHECK(replica.ahead(2) == batch(0));
  CHECK(replica.distance(batch(3)) == 1);
  CHECK(replica.distance(batch(4)) == 6);
  CHECK(!replica.follows_plan());
}

TEST_CASE("delivery: a queue's itinerary is what the queue has left, of its epoch alone") {
  WorkQueue queue;
  Itinerary worker = replica_at(0);
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
