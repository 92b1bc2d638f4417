// Producers whose daemon goes away, and those that it refuses.

#include <doctest/doctest.h>

#include "tests/client/produce/live_script.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("client: what a push has not got accepted is told, and its room comes back") {
  LiveScript run;
  std::size_t accepted = 0;
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.accept(run.pushes.back(), 2, {ErrorCode::does_not_fit, "its group is too large"});
  });
  const auto refused = run.push(5, accepted);
  CHECK(is(refused, ErrorCode::does_not_fit));
  CHECK(says(refused, "sequence 2: its group is too large"));
  CHECK(accepted == 2);
  run.world->after(10ms, [&run] { run.accept(run.pushes.back(), 1, {}, true); });
  CHECK(is(run.push(2, accepted), kEnded));
  CHECK(accepted == 1);
  CHECK(run.pushes.back().first == 2);
  CHECK(run.producer().conversation().store()->used() == 3 * 256);
  CHECK(run.producer().conversation().numbers().next == 3);
}

TEST_CASE("client: a producer of a feed that is opened meanwhile meets its daemon once more") {
  LiveSettings settings;
  settings.opening = 1;
  LiveScript run(settings);
  CHECK(run.welcomes == 2);
  CHECK(run.byes == 1);
  CHECK(run.names == std::vector<std::string>{"actor", "actor"});
  std::size_t accepted = 0;
  CHECK(is(run.push(2, accepted), kSettled));
}

TEST_CASE("client: what a dead daemon had accepted is not pushed again, and the rest is") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(2, accepted), kSettled));
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.holds_pushes = false;
    run.come_back(11, 4);  // it had accepted two of the three, and said nothing
  });
  REQUIRE(is(run.push(3, accepted), kSettled));
  CHECK(accepted == 3);
  CHECK(run.names == std::vector<std::string>{"actor", "actor"});
  REQUIRE(run.pushes.size() == 3);
  CHECK(run.pushes[2].first == 4);
  CHECK(run.pushes[2].sequences.size() == 1);
  CHECK(first_of(run.offered.back()) == 4.0F);  // its bytes, in the new area
  CHECK(run.offered.back().key == "actor/4");
  CHECK(run.producer().conversation().store()->used() == 256);
  CHECK(run.producer().last_number() == 4);
}

TEST_CASE("client: a dead daemon that had all of a push answers it by its return") {
  LiveScript run;
  std::size_t accepted = 0;
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.come_back(11, 3);
  });
  REQUIRE(is(run.push(3, accepted), kSettled));
  CHECK(accepted == 3);
  CHECK(run.pushes.size() == 1);
  CHECK(run.producer().last_number() == 2);
}

TEST_CASE("client: another incarnation is offered all of a push, by its own numbers") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(4, accepted), kSettled));
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.holds_pushes = false;
    run.come_back(12, 0);
  });
  REQUIRE(is(run.push(2, accepted), kSettled));
  CHECK(accepted == 2);
  CHECK(run.pushes.back().first == 0);
  CHECK(first_of(run.offered.at(6)) == 4.0F);
  CHECK(first_of(run.offered.at(7)) == 5.0F);
  CHECK(run.producer().conversation().numbers().incarnation == 12);
  CHECK(run.producer().last_number() == 1);
  run.free({0, 1});
  CHECK(run.producer().outcomes(0, 8, 1s));
  CHECK(run.producer().conversation().store()->used() == 0);
}

TEST_CASE("client: a claim is asked again of a daemon that comes back, for the rest of its time") {
  LiveScript run;
  run.holds_claims = true;
  run.world->after(1s, [&run] {
    run.world->die();
    run.holds_claims = false;
    run.come_back(11, 0);
  });
  std::uint64_t version = 0;
  REQUIRE(is(run.producer().claim(2, 5s, version), kSettled));
  REQUIRE(run.claims.size() == 2);
  CHECK(run.claims[1].timeout_ms < 4000);
  CHECK(run.claims[1].timeout_ms > 3000);
  CHECK(run.producer().conversation().link().reconnects() == 1);
}

TEST_CASE("client: a daemon that stays away is told of, and given up in the end") {
  LiveScript run({.reconnect = 10s});
  run.world->die();
  std::size_t accepted = 0;
  const auto away = run.push(1, accepted, 4s);
  CHECK(is(away, ErrorCode::timed_out));
  CHECK(says(away, "has been gone for 4 s (closed the connection)"));
  CHECK(is(run.push(1, accepted, 20s), ErrorCode::disconnected));
  CHECK(is(run.push(1, accepted, 20s), ErrorCode::disconnected));
  CHECK(run.pushes.empty());
}

TEST_CASE("client: a name that the last session still has is asked for again") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  run.world->die();
  run.come_back(11, 1);
  run.refuses_to_produce = Error{ErrorCode::busy, "\"actor\" is in use"};
  run.world->after(500ms, [&run] { run.refuses_to_produce.reset(); });
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.names.size() > 2);
  CHECK(run.producer().last_number() == 1);
}

TEST_CASE("client: a producer that the daemon refuses is none") {
  struct Refusing : LiveScript {
    Refusing() : LiveScript({.knows_live = false}) {}
  };
  Refusing older;
  REQUIRE_FALSE(older.made->has_value());
  CHECK(older.made->error().code == ErrorCode::unsupported);
  CHECK(older.made->error().message.find("too old for live feeds") != std::string::npos);
}

TEST_CASE("client: a feed that was replaced is produced for again") {
  LiveScript run;
  std::size_t accepted = 0;
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.holds_pushes = false;
    run.refuse({ErrorCode::disconnected, "the feed was replaced"}, run.number);
    // Its push came to the feed in the other's place.
    run.refuse({ErrorCode::not_found, "this session has no producer 1"}, run.number);
  });
  REQUIRE(is(run.push(2, accepted), kSettled));
  CHECK(run.names.size() == 2);
  CHECK(run.pushes.size() == 2);
  run.refuse({ErrorCode::store_unavailable, "the spool is gone"}, run.number);
  CHECK(is(run.push(1, accepted), ErrorCode::store_unavailable));
}

TEST_CASE("client: an area that is smaller than what is under way makes it a frame") {
  LiveScript run({.area_bytes = 0});
  std::size_t accepted = 0;
  run.holds_pushes = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.holds_pushes = false;
    run.come_back(11, 1);
  });
  REQUIRE(is(run.push(3, accepted), kSettled));
  CHECK(run.pushes.back().framed);
  CHECK(run.pushes.back().sequences.size() == 2);
  CHECK(first_of(run.offered.back()) == 2.0F);
}

TEST_CASE("client: what is freed of a feed that was replaced is not room of the next one") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  const std::uint32_t before = run.number;
  run.refuse({ErrorCode::disconnected, "the feed was replaced"}, before);
  run.incarnation = 12;
  run.next = 0;
  run.world->after(5ms, [&run, before] {
    run.number = before;
    run.free({0});
  });
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.producer().outcomes(0, 8, 1s));
  CHECK(run.producer().conversation().store()->used() == 256);
}

TEST_CASE("client: a producer that waits for room is told that the feed has ended") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(16, accepted), kSettled));
  run.world->after(10ms, [&run] {
    wire::AcceptedT told;
    told.producer = run.number;
    told.next = 16;
    told.ended = true;
    run.world->say(std::move(told));
  });
  CHECK(is(run.push(1, accepted), kEnded));
  std::unique_ptr<WrittenRoom> room;
  const std::vector<std::uint32_t> lengths = {2, 2, 5, 1};
  CHECK(is(run.producer().reserve(lengths, 1s, room), kEnded));
}
