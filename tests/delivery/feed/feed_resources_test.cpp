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
