#include "daemon/assembly/disk/page_cache_policy.h"

#include <doctest/doctest.h>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

constexpr std::size_t kRecord = 1000;

std::shared_ptr<const Snapshot> dataset() {
  return std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {4}),
                                          std::vector<std::uint32_t>(100, 1));
}

}  // namespace

TEST_CASE("assembly: everything stays where the datasets fit the memory") {
  PageCachePolicy residence;
  const auto snapshot = dataset();
  residence.set_room(1'000'000);
  residence.add(snapshot, 100 * kRecord, 100);
  CHECK_FALSE(residence.is_short());
  for (std::uint64_t o = 0; o < 100; ++o) CHECK(residence.stays(snapshot.get(), o, kRecord));
  CHECK(residence.kept_bytes() == 0);
}

TEST_CASE("assembly: what was used first stays, the rest goes, and the next epoch is no other") {
  PageCachePolicy residence;
  const auto snapshot = dataset();
  residence.set_room(16 * kRecord);  // of which 10 records may stay
  residence.add(snapshot, 100 * kRecord, 100);
  REQUIRE(residence.is_short());
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t o = 0; o < 100; ++o) {
      CHECK(residence.stays(snapshot.get(), o, kRecord) == (o < 10));
    }
    CHECK(residence.kept_bytes() == 10 * kRecord);
  }
}

TEST_CASE("assembly: where memory becomes short, what stayed goes when it is used again") {
  PageCachePolicy residence;
  const auto snapshot = dataset();
  residence.set_room(16 * kRecord);
  residence.add(snapshot, 100 * kRecord, 100);
  for (std::uint64_t o = 0; o < 10; ++o) REQUIRE(residence.stays(snapshot.get(), o, kRecord));
  residence.set_room(8 * kRecord);
  for (std::uint64_t o = 0; o < 5; ++o) CHECK_FALSE(residence.stays(snapshot.get(), o, kRecord));
  for (std::uint64_t o = 5; o < 10; ++o) CHECK(residence.stays(snapshot.get(), o, kRecord));
  CHECK(residence.kept_bytes() == 5 * kRecord);
}

TEST_CASE("assembly: several datasets share the memory, and one that is closed leaves it") {
  PageCachePolicy residence;
  auto one = dataset();
  const auto other = dataset();
  residence.set_room(160 * kRecord);
  residence.add(one, 60 * kRecord, 100);
  CHECK_FALSE(residence.is_short());
  residence.add(other, 60 * kRecord, 100);
  residence.add(other, 60 * kRecord, 100);  // once is enough
  CHECK(residence.is_short());
  REQUIRE(residence.stays(one.get(), 3, kRecord));
  one.reset();
  residence.add(other, 60 * kRecord, 100);
  CHECK_FALSE(residence.is_short());
  CHECK(residence.kept_bytes() == 0);
}

TEST_CASE("assembly: an eighth of the memory is for what is read ahead") {
  PageCachePolicy residence;
  residence.set_room(80 * kRecord);
  CHECK(residence.ahead_limit() == 10 * kRecord);
}
