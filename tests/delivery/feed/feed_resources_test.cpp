#include <doctest/doctest.h>

#include <string>

#include "daemon/delivery/delivery.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Why a feed with this padding of a small dataset cannot be prepared; empty when it can.
std::string refusal(const PaddingValues& padding, const Casts& casts = {}) {
  const TemporaryFolder folder;
  make_small_dataset(folder / "data", mixed_lengths(8, 5));
  Catalog catalog;
  const auto dataset = catalog.open({folder / "data"});
  REQUIRE(dataset);
  FeedSettings settings;
  settings.name = "train";
  settings.padding = padding;
  settings.casts = casts;
  const auto resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
  return resources ? std::string() : resources.error().message;
}

}  // namespace

TEST_CASE("delivery: where none are named a feed has two slots a rank and two more, 16 at least") {
  const TemporaryFolder folder;
  make_small_dataset(folder / "data", mixed_lengths(600, 5));
  Catalog catalog;
  const auto dataset = catalog.open({folder / "data"});
  REQUIRE(dataset);
  const auto snapshot = *(*dataset)->snapshot();
  FeedSettings settings;
  settings.name = "train";
  const std::uint64_t slot = whole_pages(*feed_slot_bytes(*snapshot, settings));
  const auto chosen = [&](std::uint32_t world, std::uint64_t slots) {
    settings.plan.world = world;
    return feed_slots(settings, slot, slots * slot + slot - 1);
  };
  CHECK(chosen(1, 1000) == 16);
  CHECK(chosen(7, 1000) == 16);
  CHECK(chosen(8, 1000) == 18);
  CHECK(chosen(16, 1000) == 34);
  CHECK(about_slots(settings, 34).empty());
  // As many as fit, down to one for each rank and one that goes round.
  CHECK(chosen(16, 33) == 33);
  CHECK(about_slots(settings, 33) ==
        "33 slots, as many as the memory ceiling leaves; 34 would suit world = 16");
  CHECK(chosen(16, 17) == 17);
  CHECK(chosen(16, 16) == 17);  // for which there is no room, and so it is refused
  CHECK(chosen(1, 0) == 2);
  settings.plan.world = 1;
  const auto refused = prepare_feed(*dataset, settings, slot);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("(2 slots of") != std::string::npos);
  const auto few = prepare_feed(*dataset, settings, 3 * slot);
  REQUIRE(few);
  CHECK(few->arena->slots() == 3);
  // What is named is had or refused.
  settings.slots = 4;
  CHECK(chosen(16, 1000) == 4);
  CHECK(!prepare_feed(*dataset, settings, 3 * slot));
}

TEST_CASE("delivery: a feed whose padding its dataset cannot hold is refused before it is served") {
  CHECK(refusal({{"features", -15.9}}).empty());
  CHECK(refusal({{"fatures", -15.9}}) ==
        "padding.fatures: the dataset has no such field; allowed: features");
  CHECK(refusal({{"label", -100}}).find("the field is a scalar") != std::string::npos);
  CHECK(refusal({{"features", 1e300}}).find("padding.features: found 1e+300") == 0);
}

TEST_CASE("delivery: a cast of what is no float32 is refused with what can be cast") {
  CHECK(refusal({}, {DType::bfloat16, {}}).empty());
  CHECK(refusal({}, {DType::none, {{"features", DType::float16}}}).empty());
  CHECK(refusal({}, {DType::none, {{"fatures", DType::float16}}}) ==
        "dtype.fatures: found float16, but the dataset has no such field; allowed: features");
  CHECK(refusal({}, {DType::none, {{"label", DType::float16}}})
            .find("dtype.label: found float16, but the field is int") == 0);
}

TEST_CASE("delivery: padding has to fit the dtype that its field is cast to") {
  CHECK(refusal({{"features", -65504}}, {DType::float16, {}}).empty());
  CHECK(refusal({{"features", -65505}}, {}).empty());
  CHECK(refusal({{"features", -65505}}, {DType::float16, {}}).find("which float16 can hold") !=
        std::string::npos);
}
