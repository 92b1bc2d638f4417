#include <doctest/doctest.h>

#include <string>

#include "daemon/delivery/delivery.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Why a feed with this padding of a small dataset cannot be prepared; empty when it can.
std::string refusal(const PaddingValues& padding) {
  const TemporaryFolder folder;
  make_small_dataset(folder / "data", mixed_lengths(8, 5));
  Catalog catalog;
  const auto dataset = catalog.open({folder / "data"});
  REQUIRE(dataset);
  FeedSettings settings;
  settings.name = "train";
  settings.padding = padding;
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
