#include "client/library/link/search.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

const Search::Clock::time_point kStart{1000s};

}  // namespace

TEST_CASE("client: a daemon is looked for at once, and then at intervals") {
  Search search(60s);
  CHECK(search.attempt_is_due(kStart));
  search.attempted(kStart);
  CHECK_FALSE(search.attempt_is_due(kStart + Search::kBetweenAttempts - 1ms));
  CHECK(search.attempt_is_due(kStart + Search::kBetweenAttempts));
  search.hurry(kStart);
  CHECK(search.attempt_is_due(kStart));
}

TEST_CASE("client: before a first daemon was met none is away, and none is given up") {
  Search search(60s);
  search.lost("said goodbye", kStart);
  CHECK_FALSE(search.is_away());
  CHECK_FALSE(search.is_given_up(kStart + 1h));
  CHECK_FALSE(search.met());
  CHECK(search.has_met());
}

TEST_CASE("client: a daemon's absence is counted from the first loss, and told by the latest") {
  Search search(60s);
  search.met();
  search.lost("closed the connection", kStart);
  search.lost("said goodbye", kStart + 30s);
  CHECK(search.text(kStart + 31s) == "has been gone for 31 s (said goodbye)");
  search.note_obstacle("no descriptor left");
  CHECK(search.text(kStart + 32s) == "has been gone for 32 s (no descriptor left)");
  CHECK_FALSE(search.is_given_up(kStart + 59s));
  CHECK(search.is_given_up(kStart + 60s));
  CHECK(search.met());
  CHECK_FALSE(search.is_given_up(kStart + 60s));
}

TEST_CASE("client: the next change of a search is an attempt, giving up, or none") {
  Search search(60s);
  CHECK(search.next_change(false, kStart + 1h) == kStart + 1h);
  search.met();
  search.attempted(kStart);
  search.lost("said goodbye", kStart);
  CHECK(search.next_change(true, kStart + 1h) == kStart + Search::kBetweenAttempts);
  CHECK(search.next_change(false, kStart + 1h) == kStart + 60s);
}
