// What a producer can do to a live feed: a test for each line of the table in
// daemon/delivery/feed/live/README.md.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "tests/delivery/live/virtual_live_service.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr SessionId kHostile = kActor;

std::vector<Offered> some(std::uint64_t count, std::uint64_t first = 0) {
  std::vector<Offered> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back({first + i, 5});
  return all;
}

FeedSettings with_pool(std::uint32_t step, std::uint64_t sequences) {
  FeedSettings settings = live_feed(step);
  settings.live->pool.pool_sequences = sequences;
  return settings;
}

}  // namespace

TEST_CASE("delivery: a producer that lies about offsets and lengths is refused, and nothing read") {
  VirtualLiveService desk(live_feed(4));
  REQUIRE(desk.produce(kHostile, "hostile"));
  const auto refused = [&](auto spoil, std::size_t frame_bytes = 4096) {
    LaidOutPush laid = lay_out({{0, 5}});
    spoil(laid.push);
    laid.bytes.resize(frame_bytes);
    desk.push(kHostile, std::move(laid.push), std::move(laid.bytes));
    const auto answer = desk.answer<wire::Accepted>(kHostile);
    REQUIRE(answer);
    CHECK(answer->next == 0);
    return answer->text;
  };
  const auto at = [](std::uint64_t offset) {
    return [offset](wire::PushT& push) { push.sequences[0] = {offset, 0, 0, kNoGroup, 0, 2, 1}; };
  };
  const auto with = [](std::vector<std::uint32_t> lengths) {
    return [lengths](wire::PushT& push) { push.lengths = lengths; };
  };
  CHECK(refused(at(8192)) == "sequence 0: offset 8192; allowed: multiples of 64 up to 4096");
  CHECK(refused(at(~std::uint64_t{63})).starts_with("sequence 0: offset 18446744073709551552"));
  CHECK(refused(at(32)) == "sequence 0: offset 32; allowed: multiples of 64 up to 4096");
  CHECK(refused(at(4096)).starts_with("sequence 0: field \"x\" of 40 bytes at 4096"));
  CHECK(
      refused([](wire::PushT&) {}, 64).starts_with("sequence 0: field \"ids\" of 20 bytes at 64"));
  CHECK(refused(with({0xFFFFFFFF, 0xFFFFFFFF, 1})).starts_with("sequence 0: field \"x\""));
  CHECK(refused(with({0, 0, 1})).starts_with("sequence 0: "));
  CHECK(refused(with({5, 6, 1})).starts_with("sequence 0: "));
  CHECK(refused(with({5, 5, 2})).starts_with("sequence 0: "));
  CHECK(refused(with({5, 5})) == "sequence 0: 2 lengths for 1 sequences of 3 fields");
  CHECK(refused([](wire::PushT& push) { push.first = 7; }) == "sequence 7: 0 comes next");
  desk.push(kHostile, some(1));
  CHECK(desk.answer<wire::Accepted>(kHostile)->next == 1);
}

TEST_CASE("delivery: a producer that scribbles over its area spoils its own rows alone") {
  VirtualLiveService desk(live_feed(4));
  auto area = ProducerArea::create(1 << 16);
  REQUIRE(area);
  const WrittenArea written(*area);
  REQUIRE(desk.produce(kHostile, "hostile", written.shared()));
  REQUIRE(desk.produce(kOther, "other"));
  written.push(desk, kHostile, some(2));
  desk.push(kOther, some(2));
  std::fill(written.bytes().begin(), written.bytes().end(), std::byte{0xFF});
  desk.take(kTrainer, 0);
  REQUIRE(desk.steps() == 1);
  CHECK(desk.rows(0) == std::vector<std::pair<std::string, std::uint64_t>>{
                            {"hostile", 0}, {"hostile", 1}, {"other", 0}, {"other", 1}});
  CHECK(desk.has_its_values(0, "other"));
  CHECK_FALSE(desk.has_its_values(0, "hostile"));  // where they lay, and as long as they were
}

TEST_CASE("delivery: a producer cannot take its area away") {
  auto area = ProducerArea::create(1 << 16);
  REQUIRE(area);
  const int its = ::dup((*area)->descriptor());
  for (const off_t bytes : {off_t{0}, off_t{1} << 20}) {
    CHECK(::ftruncate(its, bytes) == -1);
    CHECK(errno == EPERM);
  }
  CHECK(::fcntl(its, F_ADD_SEALS, F_SEAL_WRITE) == -1);
  ::close(its);
  CHECK((*area)->bytes().back() == std::byte{0});
}

TEST_CASE("delivery: producers that fill their areas and push nothing get a bounded room") {
  const TestServer server(live_feed(4));  // a pool of 1 MiB
  RawProducer greedy(server, "greedy", std::uint64_t{1} << 40);
  CHECK(greedy.produced().area_bytes == std::uint64_t{4} << 20);
  RawProducer late(server, "late", 1 << 16);
  CHECK(late.produced().area == 0);
  CHECK(late.push(some(4)) == 4);  // in frames
}

TEST_CASE("delivery: a producer that pushes without end gets its turn, as the others do") {
  VirtualLiveService desk(with_pool(4, 4));
  REQUIRE(desk.produce(kHostile, "hostile"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.push(kHostile, some(1000));
  desk.push(kHostile, some(10, 1000));
  CHECK(desk.answer<wire::Refused>(kHostile)->code == static_cast<int>(ErrorCode::busy));
  desk.push(kOther, some(1));
  desk.take(kTrainer, 0);
  const auto accepted = desk.answer<wire::Accepted>(kOther);
  REQUIRE(accepted);  // after one step, of 250
  CHECK(accepted->next == 1);
  CHECK_FALSE(desk.answer<wire::Accepted>(kHostile));
}

TEST_CASE("delivery: claims of a producer that pushes nothing end, and others are granted") {
  FeedSettings settings = with_pool(4, 6);
  settings.live->pool.claim_timeout_ms = 1000;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kHostile, "hostile"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.take(kTrainer, 0);
  desk.claim(kHostile, 6);
  CHECK(desk.answer<wire::Claimed>(kHostile)->code == 0);
  desk.claim(kOther, 4);
  desk.pass(std::chrono::milliseconds(999));
  CHECK_FALSE(desk.answer<wire::Claimed>(kOther));
  desk.pass(std::chrono::milliseconds(1));
  const auto claimed = desk.answer<wire::Claimed>(kOther);
  REQUIRE(claimed);
  CHECK(claimed->code == 0);
}

TEST_CASE("delivery: a producer gives up what it claimed, some or all") {
  VirtualLiveService desk(with_pool(4, 6));
  REQUIRE(desk.produce(kHostile, "hostile"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.take(kTrainer, 0);
  desk.claim(kHostile, 6);
  wire::AbandonT some_of_it;
  some_of_it.producer = 1;
  some_of_it.group = kNoGroup;
  some_of_it.count = 2;
  desk.ask(kHostile, some_of_it);
  desk.claim(kOther, 3);
  CHECK_FALSE(desk.answer<wire::Claimed>(kOther));
  wire::AbandonT all = some_of_it;
  all.count = 0;
  desk.ask(kHostile, all);
  CHECK(desk.answer<wire::Claimed>(kOther));
}

TEST_CASE("delivery: groups that a producer begins and leaves are closed, and hold up no other") {
  FeedSettings settings = with_pool(4, 8);
  settings.live->pool.groups = LiveGroups::step;
  settings.live->pool.group_timeout_ms = 1000;
  settings.live->pool.late_groups = LateGroups::abandon;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kHostile, "hostile"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.take(kTrainer, 0);
  desk.push(kHostile, {{0, 5, 0, 70, 4}, {1, 5, 0, 71, 4}});  // each takes room for four
  desk.push(kOther, {{0, 5, 0, 72, 2}, {1, 5, 0, 72, 2}, {2, 5, 0, 73, 2}, {3, 5, 0, 73, 2}});
  desk.pass(std::chrono::milliseconds(999));
  CHECK_FALSE(desk.answer<wire::Accepted>(kOther));
  desk.pass(std::chrono::milliseconds(1));
  CHECK(desk.answer<wire::Accepted>(kOther)->next == 4);
  CHECK(desk.rows(0) == std::vector<std::pair<std::string, std::uint64_t>>{
                            {"other", 0}, {"other", 1}, {"other", 2}, {"other", 3}});
  CHECK(desk.outcomes(kHostile)->outcomes ==
        std::vector<wire::Outcome>(2, wire::Outcome::abandoned));
}

TEST_CASE("delivery: a name is one producer's, and names are bounded") {
  VirtualLiveService desk(live_feed(4));
  REQUIRE(desk.produce(kOther, "other"));
  CHECK_FALSE(desk.produce(kHostile, "other"));
  const auto ask = [&desk](std::uint32_t number) {
    ProduceAsked asked;
    asked.request.producer = number;
    asked.request.feed = "live";
    desk.ask(kHostile, std::move(asked));
  };
  for (std::uint32_t number = 1; number <= ProducerTable::kMostOfSession; ++number) ask(number);
  CHECK_FALSE(desk.answer<wire::Refused>(kHostile));
  ask(1000);
  CHECK(desk.answer<wire::Refused>(kHostile)->message == "a session has at most 64 producers");
  ProducerTable names(std::make_shared<FrameRoom>(1, 1));
  for (std::size_t i = 0; i < ProducerTable::kMost; ++i) {
    if (!names.named(std::to_string(i))) FAIL("name ", i);
  }
  CHECK(names.named("another").error().code == ErrorCode::does_not_fit);
  CHECK(names.named("7"));
}

TEST_CASE("delivery: waits for versions are bounded, and end with their sessions") {
  VirtualLiveService desk(live_feed(4));
  const auto wait = [&desk](SessionId session) {
    wire::AwaitVersionT question;
    question.above = 5;
    desk.ask(session, std::move(question));
  };
  for (int i = 0; i < 4096; ++i) wait(kHostile);
  wait(kOther);
  CHECK(desk.answer<wire::Version>(kOther)->code == static_cast<int>(ErrorCode::does_not_fit));
  desk.end_session(kHostile);
  wait(kOther);
  CHECK_FALSE(desk.answer<wire::Version>(kOther));
}

TEST_CASE("delivery: versions of the future and groups without end are refused") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.groups = LiveGroups::step;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kHostile, "hostile"));
  const auto refused = [&](const Offered& sequence) {
    desk.push(kHostile, {sequence});
    return desk.answer<wire::Accepted>(kHostile)->text;
  };
  CHECK(refused({0, 5, std::uint64_t{1} << 62, 70, 2}) ==
        "version 4611686018427387904 was never announced");
  CHECK(refused({0, 5, ~std::uint64_t{0}, 70, 2}) == "sequence 0: a version beyond 2^62");
  CHECK(refused({0, 5, 0, 70, 0xFFFFFFFF}) ==
        "its group has 4294967295 sequences; a step of this feed takes up to 4");
  CHECK(refused({0, 5, 0, 70, 0}) == "a group needs its size: live.groups is set");
}
