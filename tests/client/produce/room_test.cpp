// Sequences that are written in place.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/client/produce/live_script.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Room = std::unique_ptr<WrittenRoom>;

Room reserve(LiveScript& run, std::vector<std::uint32_t> lengths = {2, 2, 5, 1}) {
  Room room;
  REQUIRE(is(run.producer().reserve(lengths, 1s, room), kSettled));
  std::fill(room->memory().begin(), room->memory().end(), std::byte{0});
  return room;
}

void write(const Room& room, float value) {
  std::memcpy(room->memory().data() + room->places[0].offset, &value, sizeof value);
}

}  // namespace

TEST_CASE("client: a sequence is pushed from where it was written") {
  LiveScript run;
  const Room room = reserve(run);
  CHECK(room->places.size() == 4);
  CHECK(room->places[1].offset == 64);
  CHECK(room->places[2].bytes == 5);
  write(room, 3.5F);
  REQUIRE(is(run.producer().commit(*room, {"one", nullptr}, 1s), kSettled));
  CHECK(run.offered.at(0).key == "one");
  CHECK(run.offered.at(0).lengths == std::vector<std::uint32_t>{2, 2, 5, 1});
  CHECK(run.offered.at(0).offered.offset() == room->place);
  CHECK(first_of(run.offered.at(0)) == 3.5F);
  CHECK(run.producer().conversation().store()->used() == 256);
  run.free({0});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.producer().conversation().store()->used() == 256);
}

TEST_CASE("client: a room that is given up is free") {
  LiveScript run;
  const Room one = reserve(run);
  const Room other = reserve(run);
  CHECK(run.producer().conversation().store()->used() == 512);
  run.producer().drop(*one);
  CHECK(run.producer().conversation().store()->used() == 256);
  run.producer().drop(*other);
  CHECK(run.producer().conversation().store()->used() == 0);
  CHECK(run.pushes.empty());
}

TEST_CASE("client: a room that is refused is as it was") {
  LiveScript run;
  const Room room = reserve(run);
  write(room, std::nanf(""));
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::schema_mismatch));
  CHECK(run.pushes.empty());
  write(room, 2);
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.accept(run.pushes.back(), 0, {ErrorCode::timed_out, "the pool is full"});
  });
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::timed_out));
  CHECK(run.producer().conversation().store()->used() == 256);
  run.holds_pushes = false;
  REQUIRE(is(run.producer().commit(*room, {"one", nullptr}, 1s), kSettled));
  CHECK(run.offered.back().number == 0);
  run.free({0});
  REQUIRE(run.producer().outcomes(0, 1, 1s));
  CHECK(run.producer().conversation().store()->used() == 0);
}

TEST_CASE("client: a room outlives its daemon, and is copied for the next") {
  LiveScript run;
  const Room room = reserve(run);
  run.world->die();
  run.come_back(12, 0);
  write(room, 4);
  SUBCASE("before it is committed") {
    REQUIRE(is(run.producer().commit(*room, {"one", nullptr}, 5s), kSettled));
  }
  SUBCASE("while it is") {
    std::size_t accepted = 0;
    REQUIRE(is(run.push(1, accepted), kSettled));
    const Room second = reserve(run);
    write(second, 4);
    run.holds_pushes = true;
    run.world->after(10ms, [&run] {
      run.world->die();
      run.holds_pushes = false;
      run.come_back(13, 0);
    });
    REQUIRE(is(run.producer().commit(*second, {"one", nullptr}, 5s), kSettled));
  }
  CHECK(first_of(run.offered.back()) == 4.0F);
  CHECK(run.offered.back().key == "one");
  CHECK(run.producer().conversation().store()->used() == 256);
  run.producer().drop(*room);
  run.free({0, 1});
  REQUIRE(run.producer().outcomes(0, 1, 1s));
  CHECK(run.producer().conversation().store()->used() == 0);
}

TEST_CASE("client: a room whose push has no answer is the daemon's") {
  LiveScript run;
  run.holds_pushes = true;
  const Room room = reserve(run);
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::timed_out));
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::invalid_argument));
  run.producer().drop(*room);
  CHECK(run.producer().conversation().store()->used() == 256);
  run.holds_pushes = false;
  run.world->after(1ms, [&run] {
    run.accept(run.pushes.at(0));
    run.free({0});
  });
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.producer().conversation().store()->used() == 256);
  CHECK(run.pushes.back().first == 1);
}

TEST_CASE("client: a room larger than the area, and one without, are memory of their own") {
  LiveScript run({.area_bytes = 1024});
  const Room room = reserve(run, {2, 2, 2000, 1});
  CHECK(room->store == nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(room->memory().data()) % 64 == 0);
  write(room, 6);
  REQUIRE(is(run.producer().commit(*room, {{}, nullptr}, 1s), kSettled));
  CHECK(run.pushes.back().framed);
  CHECK(first_of(run.offered.back()) == 6.0F);
}

TEST_CASE("client: room for what is no sequence is refused") {
  LiveScript run;
  Room room;
  const auto refused = [&](std::vector<std::uint32_t> lengths, ErrorCode code) {
    CHECK(is(run.producer().reserve(lengths, 1s, room), code));
    CHECK(room == nullptr);
  };
  refused({2, 2, 5}, ErrorCode::schema_mismatch);
  refused({0, 0, 5, 1}, ErrorCode::schema_mismatch);
  refused({2, 3, 5, 1}, ErrorCode::schema_mismatch);
  refused({2, 2, 5, 2}, ErrorCode::schema_mismatch);
  refused({1001, 1001, 5, 1}, ErrorCode::does_not_fit);
  refused({2, 2, 9000, 1}, ErrorCode::does_not_fit);
}

TEST_CASE("client: a room whose push a dead daemon may have accepted is not committed again") {
  LiveScript run;
  const Room room = reserve(run);
  run.holds_pushes = true;
  run.world->after(10ms, [&run] { run.world->die(); });
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::timed_out));
  REQUIRE(run.pushes.size() == 1);
  CHECK(is(run.producer().commit(*room, {"one", nullptr}, 1s), ErrorCode::invalid_argument));
  run.producer().drop(*room);
  run.holds_pushes = false;
  run.come_back(11, 1);
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.pushes.back().first == 1);
  CHECK(run.offered.back().key == "actor/1");
}
