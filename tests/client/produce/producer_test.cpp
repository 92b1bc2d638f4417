// Whole producers over a script: no socket, no thread and no real time.

#include "client/library/produce/producer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/client/produce/live_script.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("client: a pushed sequence lies in the area as the wire has it") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted, 5s, 3), kSettled));
  CHECK(accepted == 1);
  CHECK(run.producer().last_number() == 0);
  REQUIRE(run.pushes.size() == 1);
  CHECK_FALSE(run.pushes[0].framed);
  CHECK(run.pushes[0].timeout_ms == 5000);
  const OfferedBytes& offered = run.offered.at(0);
  CHECK(offered.key == "actor/0");
  CHECK(offered.lengths == std::vector<std::uint32_t>{3, 3, 5, 1});
  CHECK(offered.offered.version() == 5);  // the last that the producer heard of
  CHECK(offered.offered.version_newest() == 5);
  CHECK(offered.offered.group() == kNoGroup);
  CHECK(offered.offered.weight() == 1.0F);
  CHECK(run.daemons[64] == std::byte{9});
  CHECK(run.daemons[128] == std::byte{'h'});
  float reward = 0;
  std::memcpy(&reward, run.daemons + 192, sizeof reward);
  CHECK(reward == 0.5F);
}

TEST_CASE("client: a claim gives the version to begin with, and the next push has it") {
  LiveScript run;
  std::uint64_t version = 0;
  REQUIRE(is(run.producer().claim(3, 2s, version), kSettled));
  CHECK(version == 7);
  CHECK(run.claims.at(0).count == 3);
  CHECK(run.claims.at(0).timeout_ms == 2000);
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK(run.offered.at(0).offered.version() == 7);
  CHECK(is(run.producer().claim(0, 2s, version), ErrorCode::invalid_argument));
}

TEST_CASE("client: a claim that is not granted says what it waits for") {
  LiveScript run;
  run.holds_claims = true;
  std::uint64_t version = 0;
  const auto answers = [&](ErrorCode code, const char* text, bool ended) {
    run.world->after(2s, [&run, code, text, ended] {
      wire::ClaimedT claimed;
      claimed.producer = run.number;
      claimed.question = run.claims.back().question;
      claimed.code = static_cast<std::uint16_t>(code);
      claimed.text = text;
      claimed.ended = ended;
      run.world->say(std::move(claimed));
    });
    return run.producer().claim(3, 2s, version);
  };
  const auto late = answers(ErrorCode::timed_out, "staleness", false);
  CHECK(is(late, ErrorCode::timed_out));
  CHECK(says(late,
             "no claim of 3 sequences of feed \"rollouts\" within 2000 ms: it waits for "
             "staleness"));
  CHECK(is(answers(ErrorCode::does_not_fit, "at most 2", false), ErrorCode::does_not_fit));
  CHECK(is(answers({}, "", true), kEnded));
}

TEST_CASE("client: a claim that is granted too late is given back before the next") {
  LiveScript run;
  run.holds_claims = true;
  std::uint64_t version = 0;
  const auto silent = run.producer().claim(3, 2s, version);
  CHECK(is(silent, ErrorCode::timed_out));
  CHECK(says(silent, "is alive, and does not answer"));
  CHECK(is(run.producer().claim(4, 2s, version), ErrorCode::timed_out));
  CHECK(run.claims.size() == 1);  // one at a time
  run.world->after(10ms, [&run] { run.grant(run.claims.at(0)); });
  run.holds_claims = false;
  REQUIRE(is(run.producer().claim(4, 2s, version), kSettled));
  REQUIRE(run.abandoned.size() == 1);
  CHECK(run.abandoned[0].count == 3);
  CHECK(run.abandoned[0].group == kNoGroup);
  CHECK_FALSE(run.abandoned[0].by_number);
}

TEST_CASE("client: a push waits for room in the area, and goes on where the daemon has read") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(16, accepted), kSettled));  // 256 bytes each
  const auto late = run.push(1, accepted, 50ms);
  CHECK(is(late, ErrorCode::timed_out));
  CHECK(says(late,
             "no room in feed \"rollouts\" within 50 ms: 4096 of 4096 bytes of the "
             "producer's area are taken, by 16 sequences"));
  CHECK(accepted == 0);
  run.world->after(50ms, [&run] { run.free({3, 4}); });
  run.world->after(100ms, [&run] { run.free({3, 8, 100}); });  // 3 was free, and 100 is none
  REQUIRE(is(run.push(3, accepted), kSettled));
  CHECK(accepted == 3);
  CHECK(run.offered.at(16).offered.offset() == 3 * 256);
  CHECK(run.offered.at(17).offered.offset() == 4 * 256);
  CHECK(run.offered.at(18).offered.offset() == 8 * 256);
  CHECK(run.offered.at(18).number == 18);
}

TEST_CASE("client: what finds no room in the area for long goes in a frame") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(16, accepted), kSettled));
  REQUIRE(is(run.push(2, accepted), kSettled));
  CHECK(accepted == 2);
  REQUIRE(run.pushes.size() == 3);  // one each
  CHECK(run.pushes[1].framed);
  CHECK(run.pushes[2].framed);
  CHECK(first_of(run.offered.at(17)) == 17.0F);
  const std::vector<std::uint32_t> lengths{2, 2, 5, 1};
  std::unique_ptr<WrittenRoom> room;
  REQUIRE(is(run.producer().reserve(lengths, 1s, room), kSettled));
  CHECK(room->store == nullptr);
  run.free({3});
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK_FALSE(run.pushes.back().framed);
}

TEST_CASE("client: without an area sequences come in the frame after the message") {
  LiveScript run({.area_bytes = 0});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(3, accepted), kSettled));
  CHECK(accepted == 3);
  REQUIRE(run.pushes.size() == 1);
  CHECK(run.pushes[0].framed);
  CHECK(run.world->frame.size() == 3 * 256);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(run.offered.at(i).offered.offset() == i * 256);
    CHECK(first_of(run.offered.at(i)) == static_cast<float>(i));
  }
}

TEST_CASE("client: a sequence that is larger than the area has a frame of its own") {
  LiveScript run({.area_bytes = 1024});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  REQUIRE(is(run.push(2, accepted, 5s, 200), kSettled));
  CHECK(accepted == 2);
  REQUIRE(run.pushes.size() == 3);
  CHECK_FALSE(run.pushes[0].framed);
  CHECK(run.pushes[1].framed);
  CHECK(run.pushes[2].framed);
  CHECK(first_of(run.offered.at(2)) == 2.0F);
  REQUIRE(is(run.push(1, accepted), kSettled));
  CHECK_FALSE(run.pushes.back().framed);
}

TEST_CASE("client: a frame that is larger than a message travels in parts, two of them ahead") {
  LiveScript run({.area_bytes = 0, .max_length = 400'000});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted, 5s, 300'000), kSettled));
  CHECK(accepted == 1);
  REQUIRE(run.pushes.size() == 3);
  CHECK(run.pushes[1].part_at == kMostFrameBytes);
  CHECK(run.pushes[2].total_bytes == run.parts.size());
  CHECK(run.parts.size() > 2 * kMostFrameBytes);
  CHECK(run.ahead == 2);
  CHECK(run.producer().last_number() == 0);
  CHECK(first_of(run.offered.at(0)) == 0.0F);
  // Smaller ones go as they did, as many in a message as it takes.
  REQUIRE(is(run.push(3, accepted, 5s, 40'000), kSettled));
  REQUIRE(run.pushes.size() == 5);
  CHECK(run.pushes[3].sequences.size() == 2);
  CHECK(run.pushes[3].total_bytes == 0);
  CHECK(first_of(run.offered.at(3)) == 3.0F);
}

TEST_CASE("client: a frame in parts that is refused says why, and not what its next part met") {
  LiveScript run({.area_bytes = 0, .max_length = 400'000});
  run.refuses_push = {ErrorCode::invalid_argument, "frames: found inf"};
  std::size_t accepted = 0;
  const auto refused = run.push(1, accepted, 5s, 300'000);
  CHECK(is(refused, ErrorCode::invalid_argument));
  CHECK(says(refused, "found inf"));
  CHECK(accepted == 0);
  CHECK(run.pushes.size() >= 2);  // they were under way together
  run.refuses_push.reset();
  run.refusals.clear();
  REQUIRE(is(run.push(1, accepted, 5s, 300'000), kSettled));
  CHECK(accepted == 1);
}

TEST_CASE("client: a daemon that comes back gets a frame in parts from its begin") {
  LiveScript run({.area_bytes = 0, .max_length = 400'000});
  std::size_t accepted = 0;
  run.world->after(1ms, [&run] {  // when some parts are there
    CHECK(!run.parts.empty());
    run.world->die();
    run.come_back(11, 0);
  });
  REQUIRE(is(run.push(1, accepted, 5s, 399'000), kSettled));
  CHECK(accepted == 1);
  CHECK(run.pushes.size() > 4);
  CHECK(run.offered.size() == 1);
  CHECK(run.parts.size() == run.pushes.back().total_bytes);
}

TEST_CASE("client: a daemon that knows no parts is told of no frame larger than a message") {
  LiveScript run({.area_bytes = 0, .knows_parts = false, .max_length = 400'000});
  std::size_t accepted = 0;
  const auto refused = run.push(1, accepted, 5s, 399'000);
  CHECK(is(refused, ErrorCode::does_not_fit));
  CHECK(says(refused, "is older, and takes at most 983040"));
  CHECK(run.pushes.empty());
  REQUIRE(is(run.push(1, accepted), kSettled));
}

TEST_CASE("client: many sequences are offered in messages that the wire takes") {
  LiveScript run({.area_bytes = 1U << 22});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(5000, accepted), kSettled));
  CHECK(accepted == 5000);
  REQUIRE(run.pushes.size() == 2);
  CHECK(run.pushes[0].sequences.size() == kMostOffered);
  CHECK(run.offered.back().number == 4999);
  const std::string key(511, 'k');
  std::vector<bw_sequence> long_keys;
  const LiveScript::Values& one = run.sequences.front();
  for (int i = 0; i < 4000; ++i) {
    long_keys.push_back({key.data(), key.size(), one.values.data(), one.values.size()});
  }
  REQUIRE(is(run.producer().push({long_keys, nullptr}, 5s, accepted), kSettled));
  CHECK(accepted == 4000);
  CHECK(run.pushes.size() == 5);
}

TEST_CASE("client: a call in slices goes on when it is made again") {
  LiveScript run({.slice = 50ms});
  run.holds_claims = run.holds_pushes = true;
  std::uint64_t version = 0;
  std::size_t accepted = 0;
  CHECK(is(run.producer().claim(2, 1s, version), kPending));
  CHECK(is(run.push(1, accepted), ErrorCode::invalid_argument));
  run.world->after(70ms, [&run] { run.grant(run.claims.back()); });
  CHECK(is(run.producer().claim(2, 1s, version), kPending));
  CHECK(is(run.producer().claim(2, 1s, version), kSettled));
  CHECK(run.claims.size() == 1);

  CHECK(is(run.push(2, accepted), kPending));
  CHECK(is(run.push(3, accepted), ErrorCode::invalid_argument));
}

TEST_CASE("client: a push that is forgotten once its answer is there holds up none after it") {
  LiveScript run({.slice = 50ms});
  run.holds_pushes = true;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kPending));
  run.accept(run.pushes.back());
  REQUIRE(run.producer().outcomes(0, 1, 1s));  // and the answer comes
  run.producer().forget();
  run.holds_pushes = false;
  CHECK(is(run.push(1, accepted), kSettled));
  CHECK(accepted == 1);
}

TEST_CASE("client: a push in slices is offered once, and what is forgotten is waited for") {
  LiveScript run({.slice = 50ms});
  run.holds_pushes = true;
  std::size_t accepted = 0;
  CHECK(is(run.push(2, accepted), kPending));
  CHECK(is(run.push(2, accepted), kPending));
  CHECK(run.pushes.size() == 1);
  run.producer().forget();
  CHECK(is(run.push(1, accepted), kPending));
  CHECK(run.pushes.size() == 1);
  run.world->after(10ms, [&run] {
    run.holds_pushes = false;
    run.accept(run.pushes.at(0));
  });
  CHECK(is(run.push(1, accepted), kSettled));
  REQUIRE(run.pushes.size() == 2);
  CHECK(run.pushes[1].first == 2);
  CHECK(run.producer().conversation().store()->used() == 3 * 256);
}

TEST_CASE("client: the outcomes of numbers, with those that the daemon forgot") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(4, accepted), kSettled));
  const auto outcomes = run.producer().outcomes(0, 3, 1s);
  REQUIRE(outcomes);
  CHECK(outcomes->first == 1);
  CHECK(outcomes->states.size() == 2);
  CHECK(outcomes->totals.at(3) == 4);
  CHECK(outcomes->duplicates == 2);
}

TEST_CASE("client: what is abandoned is said to the daemon, once it is there") {
  LiveScript run;
  run.world->die();
  run.come_back(11, 0);
  wire::AbandonT what;
  what.group = 8;
  what.count = 2;
  REQUIRE(run.producer().abandon(what));
  REQUIRE(run.abandoned.size() == 1);
  CHECK(run.abandoned[0].producer == run.number);
  CHECK(run.abandoned[0].group == 8);
}

TEST_CASE("client: a producer that is closed says so, and another thread's call ends") {
  LiveScript run;
  run.holds_claims = true;
  run.world->after(1s, [&run] { run.producer().stop(); });
  std::uint64_t version = 0;
  const auto ended = run.producer().claim(1, 60s, version);
  CHECK(is(ended, ErrorCode::disconnected));
  CHECK(says(ended, "bw_producer_close ended the producer"));
  run.producer().close(1s);
  CHECK(run.closes == 1);
  CHECK(run.byes == 1);
  CHECK(is(run.producer().claim(1, 1s, version), ErrorCode::disconnected));
}

TEST_CASE("client: closing waits for the answer to a push that no one waits for") {
  LiveScript run({.slice = 50ms});
  run.holds_pushes = true;
  std::size_t accepted = 0;
  CHECK(is(run.push(1, accepted), kPending));
  bool answered = false;
  run.world->after(2s, [&] {
    answered = true;
    run.accept(run.pushes.back());
  });
  run.producer().close(10s);
  CHECK(answered);
  CHECK(run.closes == 1);
}
