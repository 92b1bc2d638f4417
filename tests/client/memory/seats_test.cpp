#include "client/library/memory/seats.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace batchwright;

namespace {

constexpr std::size_t kSmall = 1000;
constexpr std::size_t kLarge = std::size_t{5} << 20;

}  // namespace

TEST_CASE("client: a seat has room for what was asked, and is used again") {
  Seats seats;
  auto first = seats.take(kLarge);
  REQUIRE(first);
  REQUIRE(first->bytes().size() >= kLarge);
  std::memset(first->bytes().data(), 1, first->bytes().size());
  const auto* place = first->bytes().data();
  auto second = seats.take(kLarge);
  CHECK(second->bytes().data() != place);
  seats.give_back(std::move(second));
  seats.give_back(std::move(first));
  CHECK(seats.take(kSmall)->bytes().data() == place);  // the last one back
}

TEST_CASE("client: seats that are too small make room for larger ones") {
  Seats seats;
  auto small = seats.take(kSmall);
  const std::weak_ptr<Seat> free = small;
  auto held = seats.take(kSmall);
  const std::weak_ptr<Seat> out = held;
  seats.give_back(std::move(small));
  auto large = seats.take(kLarge);
  CHECK(large->bytes().size() >= kLarge);
  CHECK(free.expired());
  seats.give_back(std::move(held));
  CHECK(out.expired());
}

TEST_CASE("client: closed seats are freed at once, and those that are out when they are back") {
  Seats seats;
  auto one = seats.take(kSmall);
  auto other = seats.take(kSmall);
  const std::weak_ptr<Seat> free = one;
  const std::weak_ptr<Seat> out = other;
  seats.give_back(std::move(one));
  CHECK_FALSE(free.expired());
  seats.close();
  CHECK(free.expired());
  seats.give_back(std::move(other));
  CHECK(out.expired());
}

TEST_CASE("client: a seat that cannot be had is none") {
  CHECK_FALSE(Seats().take(std::size_t{1} << 60));
}
