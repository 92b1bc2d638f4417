#include "daemon/delivery/peer_limiter.h"

#include <doctest/doctest.h>

using namespace batchwright;

namespace {

constexpr PeerLimiter::Clock::time_point kNow{};

PeerName peer(std::size_t number) { return {false, std::to_string(number)}; }

void spoil(PeerLimiters& table, const PeerName& who) {
  for (std::uint32_t i = 0; i < PeerLimiter::kMalformed; ++i) table.of(who, kNow).malformed();
}

}  // namespace

TEST_CASE("delivery: refused requests are forgiven one a second, malformed messages never") {
  const PeerLimiter::Clock::time_point start{};
  PeerLimiter conduct(start);
  for (std::uint32_t i = 0; i < PeerLimiter::kRefused; ++i) conduct.refused(start);
  CHECK_FALSE(conduct.is_banned());
  conduct.refused(start + std::chrono::milliseconds(1500));
  CHECK_FALSE(conduct.is_banned());
  conduct.refused(start + std::chrono::milliseconds(1999));
  CHECK(conduct.is_over_limit());
  PeerLimiter other(start);
  other.malformed();
  other.malformed();
  CHECK_FALSE(other.is_banned());
  other.refused(start + std::chrono::hours(1));
  other.malformed();
  CHECK(other.is_banned());
  CHECK_FALSE(other.is_over_limit());
}

TEST_CASE("delivery: a peer is ignored for its own offences only") {
  PeerLimiters table;
  CHECK_FALSE(table.ignores(peer(1)));
  table.of(peer(1), kNow).malformed();
  CHECK_FALSE(table.ignores(peer(1)));
  spoil(table, peer(1));
  CHECK(table.ignores(peer(1)));
  CHECK_FALSE(table.ignores(peer(2)));
  CHECK_FALSE(table.ignores({true, peer(1).name}));
}

TEST_CASE("delivery: so many offenders are remembered, and one more makes all forgotten") {
  PeerLimiters table;
  spoil(table, peer(0));
  for (std::size_t i = 1; i < PeerLimiters::kMost; ++i) table.of(peer(i), kNow).malformed();
  CHECK(table.ignores(peer(0)));
  table.of(peer(PeerLimiters::kMost), kNow).malformed();
  CHECK_FALSE(table.ignores(peer(0)));
}
