#include <doctest/doctest.h>

#include "daemon/delivery/feed/feed.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr BlockageWatch::Time kBegin{};

}  // namespace

TEST_CASE("delivery: a feed is blocked once a file system has not answered for five seconds") {
  BlockageWatch watch;
  const Blockage pages{"dataset /mnt/far", kBegin};
  CHECK(!watch.look(pages, kBegin + 4s).is_blocked);
  CHECK(!watch.blockage());
  CHECK(watch.look(pages, kBegin + 5s).is_blocked);
  REQUIRE(watch.blockage());
  CHECK(describe(*watch.blockage(), kBegin + 7500ms) ==
        "the file system of dataset /mnt/far has not answered for 7 s");
  CHECK(!watch.look(pages, kBegin + 6s).is_blocked);  // no news
  const auto over = watch.look({}, kBegin + 9s);
  CHECK(!over.is_blocked);
  REQUIRE(over.is_over);
  CHECK(over.is_over->since == kBegin);
  CHECK(!watch.blockage());
  CHECK(!watch.look({}, kBegin + 10s).is_over);
}

TEST_CASE("delivery: a feed that is blocked by one thing after another is told of each") {
  BlockageWatch watch;
  CHECK(watch.look(Blockage{"journal /a", kBegin}, kBegin + 5s).is_blocked);
  const auto next = watch.look(Blockage{"ledger /b", kBegin + 1s}, kBegin + 6s);
  CHECK(next.is_blocked);
  REQUIRE(next.is_over);
  CHECK(next.is_over->by == "journal /a");
  // An answer that comes within five seconds ends it all the same.
  CHECK(watch.look(Blockage{"ledger /b", kBegin + 6s}, kBegin + 7s).is_over);
}
