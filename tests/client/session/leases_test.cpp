#include "client/library/session/leases.h"

#include <doctest/doctest.h>

using namespace batchwright;

namespace {

constexpr Leases::Connection kOpen{};

/// A subscription that holds leases 1 to 4.
struct Holding {
  explicit Holding(bool queue = false) : all(queue) {
    for (std::uint64_t number = 1; number <= 4; ++number) leases.push_back(*all.take({number}));
  }
  /// What is told now of leases that came back; empty: nothing is.
  std::vector<LeaseNumber> told() {
    return all.has_outbox(kOpen) ? all.take_outbox(kOpen).releases : std::vector<LeaseNumber>();
  }

  Leases all;
  std::vector<Lease> leases;
};

}  // namespace

TEST_CASE("client: releases that may wait are told with the first one that may not") {
  Holding holding;
  holding.all.let_wait(1);
  holding.all.give_back(holding.leases[0]);
  CHECK(holding.told().empty());
  holding.all.give_back(holding.leases[1]);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}, {2}});
}

TEST_CASE("client: what waited is told as soon as none may wait") {
  Holding holding;
  holding.all.let_wait(1);
  holding.all.give_back(holding.leases[0]);
  holding.all.let_wait(0);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}});
}

TEST_CASE("client: no release of a queue waits, whatever was allowed") {
  Holding holding(true);
  holding.all.let_wait(3);
  holding.all.give_back(holding.leases[2]);
  CHECK(holding.told() == std::vector<LeaseNumber>{{3}});
}

TEST_CASE("client: the end of a subscription does not wait for releases that do") {
  Holding holding;
  holding.all.let_wait(4);
  for (const Lease& lease : holding.leases) holding.all.give_back(lease);
  CHECK_FALSE(holding.all.has_outbox(kOpen));
  holding.all.close();
  REQUIRE(holding.all.has_outbox(kOpen));
  const auto outbox = holding.all.take_outbox(kOpen);
  CHECK(outbox.ended);
  CHECK(outbox.releases.empty());  // its leases come back with it
  CHECK(holding.all.is_ended());
}

TEST_CASE("client: releases that waited when the session was lost mean nothing to the next") {
  Holding holding;
  holding.all.let_wait(2);
  holding.all.give_back(holding.leases[0]);
  holding.all.end_session();
  const auto again = holding.all.take({9});
  holding.all.give_back(*again);
  CHECK(holding.told() == std::vector<LeaseNumber>{{9}});
}

TEST_CASE("client: a lease of an earlier session means nothing, unless it is a queue's") {
  for (const bool queue : {false, true}) {
    Holding holding(queue);
    holding.all.end_session();
    CHECK(holding.all.held() == (queue ? 4U : 0U));
    holding.all.give_back(holding.leases[0]);
    CHECK(holding.told().size() == (queue ? 1U : 0U));
  }
}

TEST_CASE("client: a subscription that is closed ends with its session, and takes no lease then") {
  Holding holding(true);
  holding.all.close();
  CHECK(holding.all.take({5}));  // it was sent before the daemon heard of it
  holding.all.end_session();
  CHECK(holding.all.is_ended());
  CHECK_FALSE(holding.all.take({6}));
  holding.all.give_back(holding.leases[0]);
  CHECK_FALSE(holding.all.has_outbox(kOpen));
}

TEST_CASE("client: a new daemon is asked for what a queue holds, and told what was released") {
  Holding holding(true);
  holding.all.give_back(holding.leases[0]);
  CHECK(holding.told() == std::vector<LeaseNumber>{{1}});
  holding.all.end_session();
  for (const bool answered : {false, true}) {
    const Leases::Claims claims = holding.all.claims();
    CHECK(claims.held == std::vector<LeaseNumber>{{2}, {3}, {4}});
    CHECK(claims.released == std::vector<LeaseNumber>{{1}});
    CHECK_FALSE(holding.all.take({1}));
    if (answered) holding.all.confirm_claims();
  }
  CHECK(holding.all.claims().released.empty());
  CHECK(holding.all.take({1}));
}

TEST_CASE("client: what came back between two daemons is claimed until one has confirmed it") {
  Holding holding(true);
  holding.all.end_session();
  holding.all.give_back(holding.leases[0]);
  CHECK(holding.all.claims().released == std::vector<LeaseNumber>{{1}});
  holding.all.end_session();  // and it had not answered
  CHECK(holding.all.claims().released == std::vector<LeaseNumber>{{1}});
}

TEST_CASE("client: of a queue that is closed the daemon hears at once what is still held") {
  for (const bool whole : {false, true}) {
    Holding holding(true);
    holding.all.begin_session(true);
    holding.all.mark_done(holding.leases[1]);
    holding.all.give_back(holding.leases[2]);
    if (!whole) holding.all.close();
    const Leases::Connection connection{whole, true};
    REQUIRE(holding.all.has_outbox(connection));
    const auto outbox = holding.all.take_outbox(connection);
    CHECK(outbox.rest == std::vector<LeaseNumber>{{1}, {4}, {2}});
    CHECK_FALSE(outbox.ended);
    CHECK_FALSE(holding.all.has_outbox(connection));  // once
    for (const std::size_t lease : {0U, 1U, 3U}) holding.all.give_back(holding.leases[lease]);
    const auto last = holding.all.take_outbox({whole, false});
    CHECK_FALSE(last.rest);
    CHECK(last.releases.size() == 3);
    CHECK(last.ended != whole);
  }
}

TEST_CASE(
    "client: what a closed subscription holds is told of queues, and to daemons that know it") {
  for (const bool queue : {false, true}) {
    Holding holding(queue);
    holding.all.begin_session(!queue);
    holding.all.close();
    CHECK_FALSE(holding.all.has_outbox(kOpen));
  }
}

TEST_CASE("client: leases of a subscription that has ended are nothing to anyone") {
  Leases ended(true);
  ended.end();
  ended.skip(LeaseNumber{1});
  ended.confirm_claims();
  CHECK_FALSE(ended.take(LeaseNumber{1}));
  CHECK(ended.is_closed());
  CHECK_FALSE(ended.has_outbox(kOpen));
}
