#include "client/library/session/lease_book.h"

#include <doctest/doctest.h>

using namespace batchwright;

namespace {

constexpr SubscriptionNumber kHolder{1};

/// A subscription that holds leases 1 to 4.
struct Holding {
  explicit Holding(bool queue = false) {
    book.open(kHolder, queue);
    for (std::uint64_t number = 1; number <= 4; ++number) {
      leases.push_back(*book.take(kHolder, {number}));
    }
  }
  /// What is told now of leases that came back; empty: nothing is.
  std::vector<LeaseNumber> told() {
    if (!book.has_news()) return {};
    auto news = book.take_news();
    return news.releases.empty() ? std::vector<LeaseNumber>() : news.releases[0].second;
  }

  LeaseBook book;
  std::vector<Lease> leases;
};

}  // namespace

TEST_CASE("client: releases that may wait are told with the first one that may not") {
  Holding holding;
  holding.book.let_wait(kHolder, 1);
  holding.book.give_back(holding.leases[0]);
  CHECK(holding.told().empty());
  holding.book.give_back(holding.leases[1]);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}, {2}});
}

TEST_CASE("client: what waited is told as soon as none may wait") {
  Holding holding;
  holding.book.let_wait(kHolder, 1);
  holding.book.give_back(holding.leases[0]);
  holding.book.let_wait(kHolder, 0);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}});
}

TEST_CASE("client: releases wait for one subscription at a time") {
  Holding holding;
  holding.book.let_wait(kHolder, 1);
  holding.book.give_back(holding.leases[0]);
  constexpr SubscriptionNumber kSecond{2};
  holding.book.open(kSecond, false);
  holding.book.let_wait(kSecond, 1);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}});
}

TEST_CASE("client: no release of a queue waits, whatever was allowed") {
  Holding holding(true);
  holding.book.let_wait(kHolder, 3);
  holding.book.give_back(holding.leases[2]);
  CHECK(holding.told() == std::vector<LeaseNumber>{{3}});
}

TEST_CASE("client: the end of a subscription does not wait for releases that do") {
  Holding holding;
  holding.book.let_wait(kHolder, 4);
  for (const Lease& lease : holding.leases) holding.book.give_back(lease);
  CHECK_FALSE(holding.book.has_news());
  holding.book.close(kHolder);
  REQUIRE(holding.book.has_news());
  const auto news = holding.book.take_news();
  CHECK(news.ended == std::vector<SubscriptionNumber>{kHolder});
  CHECK(news.releases.empty());  // its leases come back with it
}

TEST_CASE("client: releases that waited when the session was lost mean nothing to the next") {
  Holding holding;
  holding.book.let_wait(kHolder, 2);
  holding.book.give_back(holding.leases[0]);
  holding.book.end_session();
  const auto again = holding.book.take(kHolder, {9});
  holding.book.give_back(*again);
  CHECK(holding.told() == std::vector<LeaseNumber>{{9}});
}

TEST_CASE("client: of a queue that is closed the daemon hears at once what is still held") {
  for (const bool whole : {false, true}) {
    Holding holding(true);
    holding.book.let_return(true);
    holding.book.done(holding.leases[1]);
    holding.book.give_back(holding.leases[2]);
    whole ? holding.book.close_all() : holding.book.close(kHolder);
    REQUIRE(holding.book.has_news());
    const auto news = holding.book.take_news();
    REQUIRE(news.rests.size() == 1);
    CHECK(news.rests[0].second == std::vector<LeaseNumber>{{1}, {4}, {2}});
    CHECK(news.ended.empty());
    CHECK_FALSE(news.goodbye);
    CHECK_FALSE(holding.book.has_news());  // once
    for (const std::size_t lease : {0U, 1U, 3U}) holding.book.give_back(holding.leases[lease]);
    const auto last = holding.book.take_news();
    CHECK(last.rests.empty());
    CHECK(last.ended.size() == (whole ? 0U : 1U));
    CHECK(last.goodbye == whole);
  }
}

TEST_CASE(
    "client: what a closed subscription holds is told of queues, and to daemons that know it") {
  for (const bool queue : {false, true}) {
    Holding holding(queue);
    holding.book.let_return(!queue);
    holding.book.close(kHolder);
    CHECK_FALSE(holding.book.has_news());
  }
}
