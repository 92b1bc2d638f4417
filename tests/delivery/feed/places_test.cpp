#include "daemon/delivery/feed/roster/places.h"

#include <doctest/doctest.h>

#include "tests/delivery/feed/names.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Places::Place at(std::uint64_t index) {
  Places::Place place;
  place.next = {Epoch{0}, BatchIndex{index}};
  return place;
}

Places::Position step(std::uint64_t number) { return {Epoch{0}, Step{number}}; }

}  // namespace

TEST_CASE("delivery: those in step stand at one place") {
  Places places;
  for (std::uint64_t i = 1; i <= 3; ++i) places.note(client(i), at(7), step(7));
  CHECK(places.all().size() == 1);
  places.note(client(2), at(8), step(8));
  CHECK(places.all().size() == 2);
  CHECK(places.all().at(at(7)).size() == 2);
  places.forget(client(1));
  places.forget(client(3));
  CHECK(places.all().size() == 1);
}

TEST_CASE("delivery: the slowest is the last of those that have a position") {
  Places places;
  CHECK(!places.slowest());
  places.note(client(1), at(7), step(7));
  places.note(client(2), at(3), {});
  CHECK(places.slowest() == step(7));
  places.note(client(3), at(5), step(5));
  CHECK(places.slowest() == step(5));
  places.note(client(3), at(9), step(9));
  CHECK(places.slowest() == step(7));
}
