#include "daemon/delivery/feed/slots/cursor.h"

#include <doctest/doctest.h>

using namespace batchwright;

namespace {

BatchId id(std::uint64_t epoch, std::uint64_t index) { return {Epoch{epoch}, BatchIndex{index}}; }

}  // namespace

TEST_CASE("delivery: a rank takes its places of every step") {
  const auto share = rank_share(8, 1, 4);
  REQUIRE(share);
  Cursor cursor(*share, Epoch{2}, Step{1});
  CHECK(cursor.next() == id(2, 10));
  cursor.advance();
  CHECK(cursor.next() == id(2, 11));
  cursor.advance();
  CHECK(cursor.next() == id(2, 18));
  CHECK(cursor.step() == Step{2});
}

TEST_CASE("delivery: the end of an epoch is the step behind its last") {
  Cursor cursor(whole_share(2), Epoch{0}, Step{3});
  CHECK(cursor.at_end(3));
  CHECK_FALSE(cursor.at_end(4));
  cursor.begin_next_epoch();
  CHECK(cursor.next() == id(1, 0));
}

TEST_CASE("delivery: a cursor looks ahead into the next epoch and no further") {
  const Cursor cursor(whole_share(2), Epoch{0}, Step{1});
  CHECK(cursor.ahead(0, 2, 1) == id(0, 2));
  CHECK(cursor.ahead(1, 2, 1) == id(0, 3));
  CHECK(cursor.ahead(2, 2, 1) == id(1, 0));
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
  CHECK(cursor.distance(id(1, 4), 9) == std::nullopt);
  CHECK(cursor.distance(id(1, 7), 9) == std::nullopt);
  CHECK(cursor.distance(id(0, 8), 9) == std::nullopt);
  CHECK(cursor.distance(id(3, 0), 9) == std::nullopt);
}
