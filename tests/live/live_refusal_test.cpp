#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "tests/live/some_pool.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The message with which settings are refused; empty if they are not.
std::string refused(const std::function<void(LiveSettings&)>& change) {
  LiveSettings settings;
  change(settings);
  const auto checked = check_live_settings(settings);
  return checked ? "" : checked.error().message;
}

LivePush some_push(std::uint64_t number = 0) {
  LivePush push;
  push.number = number;
  push.length = 10;
  push.bytes = 40;
  return push;
}

LivePush member(std::uint64_t group, std::uint64_t size, std::uint64_t number = 0) {
  LivePush push = some_push(number);
  push.group = group;
  push.group_size = size;
  return push;
}

}  // namespace

TEST_CASE("live: settings below their least are refused with the range") {
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& s) { s.world = 0; }) == "live.world = 0; allowed: 1 to 1073741824");
  CHECK(refused([](auto& s) { s.window = 0; }) == "live.window = 0; allowed: 1 to 1000000");
  CHECK(refused([](auto& s) { s.claim_timeout_ms = 0; }) ==
        "live.claim_timeout = 0; allowed: 1 to 4503599627370496");
  CHECK(refused([](auto& s) { s.group_timeout_ms = 0; }) ==
        "live.group_timeout = 0; allowed: 1 to 4503599627370496");
  CHECK(refused([](auto& s) { s.frame_bytes.clear(); }) ==
        "live.frame_bytes = nothing; allowed: a number for each field");
}

TEST_CASE("live: a step that world, pool or max_length does not allow is refused") {
  CHECK(refused([](auto& s) { s.step = 3, s.world = 4; }) ==
        "live.step = 3; allowed: live.world = 4 and up, a row for each batch");
  CHECK(refused([](auto& s) { s.step_unit = StepUnit::groups; }) ==
        "live.step.groups = 16; allowed: with live.groups = step or batch only");
  CHECK(refused([](auto& s) { s.pool_sequences = 15; }) ==
        "live.pool_sequences = 15; allowed: 16 and up, for a step");
  CHECK(refused([](auto& s) { s.step_unit = StepUnit::frames, s.pool_bytes = 63; }) ==
        "live.pool_bytes = 63; allowed: 64 and up, for the frames of a step");
  CHECK(refused([](auto& s) { s.step_unit = StepUnit::frames, s.world = 2, s.max_length = 9; }) ==
        "live.max_length = 9; allowed: 0 to 8, a batch's share of the step");
  CHECK(refused([](auto& s) { s.step_unit = StepUnit::frames, s.max_staleness = 1; }) ==
        "live.max_length = 0; allowed: 1 and up where live.max_staleness bounds a step in frames");
  CHECK(refused([](auto& s) { s.world = 4, s.zero_most_stale = 5; }) ==
        "live.zero_most_stale = 5; allowed: 0 to 4, the rows of a batch");
}

TEST_CASE("live: what does not go with lanes is refused") {
  const auto refused_lanes = [](const auto& change) {
    return refused([&change](LiveSettings& s) {
      s.step_unit = StepUnit::lanes;
      s.unroll = 20;
      change(s);
    });
  };
  CHECK(refused_lanes([](auto&) {}) == "");
  CHECK(refused_lanes([](auto& s) { s.unroll = 0; }) ==
        "live.step.unroll = 0; allowed: 1 to 2147483647");
  CHECK(refused_lanes([](auto& s) { s.step_unit = StepUnit::sequences; }) ==
        "live.step.unroll = 20; allowed: with step.lanes only");
  CHECK(refused_lanes([](auto& s) { s.world = 3; }) ==
        "live.step = 16; allowed: a multiple of live.world = 3, as each rank has as many lanes");
  CHECK(refused_lanes([](auto& s) { s.world = 32; }) ==
        "live.step = 16; allowed: live.world = 32 and up, a row for each batch");
  CHECK(refused_lanes([](auto& s) { s.groups = LiveGroups::batch; }) ==
        "live.groups = batch; allowed: none with lanes, which take sequences one by one");
  CHECK(refused_lanes([](auto& s) { s.reuse = 2; }) ==
        "live.reuse = 2; allowed: 1 with lanes, which go through a sequence once");
  CHECK(refused_lanes([](auto& s) { s.select = LiveSelect::uniform; }) ==
        "live.select = uniform; allowed: fifo with lanes, which take sequences in their order");
  CHECK(refused_lanes([](auto& s) { s.cut = Cut::dynamic; }) ==
        "live.cut = dynamic; allowed: fixed with lanes, which stay with their ranks");
  CHECK(refused_lanes([](auto& s) { s.max_staleness = 1; }) ==
        "live.max_length = 0; allowed: 1 and up where live.max_staleness bounds lanes");
  CHECK(refused_lanes([](auto& s) { s.fresh_share = 0.5; }) ==
        "live.fresh_share = 0.5; allowed: nothing, as live.reuse = 1 makes all of a step fresh");
}

TEST_CASE("live: choices that contradict each other are refused") {
  CHECK(refused([](auto& s) { s.cut = Cut::quadratic; }) ==
        "live.quadratic_scale = 0; allowed: 1 and up with live.cut = quadratic");
  CHECK(refused([](auto& s) { s.stale = StalePolicy::zero; }) ==
        "live.stale = zero; allowed: pace or drop, as live.max_staleness is not set");
  CHECK(refused([](auto& s) { s.max_staleness = 1, s.select = LiveSelect::uniform; }) ==
        "live.stale = pace; allowed: drop or zero with live.select = uniform");
  CHECK(refused([](auto& s) { s.fresh_share = 0.5; }) ==
        "live.fresh_share = 0.5; allowed: nothing, as live.reuse = 1 makes all of a step fresh");
  CHECK(refused([](auto& s) { s.reuse = 0; }) ==
        "live.fresh_share = nothing; allowed: 0 to 1 with live.reuse = 0");
  CHECK(refused([](auto& s) { s.reuse = 2, s.fresh_share = 1.5; }) ==
        "live.fresh_share = 1.5; allowed: 0 to 1");
}

TEST_CASE("live: a push that can never be accepted is refused with the reason") {
  LiveSettings settings = steps_of(4);
  settings.max_length = 50;
  settings.pool_bytes = 1000;
  SomePool pool(settings);
  LivePush push = some_push(1);
  CHECK(pool.refusal(push) == "number 1; 0 comes next");
  push = some_push();
  push.length = 0;
  CHECK(pool.refusal(push) == "0 frames; allowed: 1 to 2147483647");
  push.length = 51;
  CHECK(pool.refusal(push) == "51 frames are more than live.max_length = 50");
  push = some_push();
  push.bytes = 1001;
  CHECK(pool.refusal(push) == "1001 bytes are more than live.pool_bytes = 1000");
  push = some_push();
  push.version = push.version_newest = 1;
  CHECK(pool.refusal(push) == "version 1 was never announced");
  pool.at(0, LiveAdvance{1});
  push.version_newest = 0;
  CHECK(pool.refusal(push) == "version_newest = 0 is below version = 1");
  pool.at(0, LiveEnd{});
  CHECK(pool.refusal(some_push()) == "the feed has ended");
}

TEST_CASE("live: a group that cannot be cut, or is another than it was, is refused") {
  LiveSettings settings = steps_of(8);
  settings.world = 2;
  settings.groups = LiveGroups::batch;
  settings.pool_sequences = 8;
  SomePool pool(settings);
  CHECK(pool.refusal(member(1, 0)) == "a group needs its size: live.groups is set");
  CHECK(pool.refusal(member(1, 5)) ==
        "its group has 5 sequences; a batch of this feed takes up to 4");
  CHECK(pool.refusal(member(1, 2)).empty());
  CHECK(pool.refusal(member(1, 3, 1)) == "the group's size is 3, and its first member's was 2");
  CHECK(pool.refusal(member(1, 2, 1)).empty());
  CHECK(pool.refusal(member(1, 2, 2)) == "all 2 members of the group are here");

  settings.step_unit = StepUnit::groups;
  settings.step = 3;
  SomePool of_groups(settings);
  CHECK(of_groups.refusal(member(1, 3)) ==
        "a step of groups of 3 needs live.pool_sequences = 3 x 3, which is 8");
}

TEST_CASE("live: a claim that can never be granted is refused with how many can") {
  LiveSettings settings = steps_of(4);
  settings.world = 3;
  settings.pool_sequences = 12;
  SomePool pool(settings);
  CHECK(pool.refusal(LiveClaim{0, 0, {}}) == "0 sequences; 1 to 10 can be claimed at once");
  CHECK(pool.refusal(LiveClaim{0, 11, {}}) == "11 sequences; 1 to 10 can be claimed at once");
  CHECK(pool.refusal(LiveClaim{0, 10, {}}).empty());

  settings.max_staleness = 1;
  SomePool bounded(settings);
  CHECK(bounded.refusal(LiveClaim{0, 9, {}}) == "9 sequences; 1 to 8 can be claimed at once");
}

TEST_CASE("live: a number that was accepted is a repeat") {
  SomePool pool(steps_of(2));
  pool.at(0, some_push());
  pool.at(0, some_push());
  CHECK(pool.last_answer().kind == LiveAnswer::Kind::duplicate);
  CHECK(pool.pool.status().waiting == 1);
}

TEST_CASE("live: time that falls breaks an invariant") {
  SomePool pool(steps_of(2));
  pool.at(5, TimePassed{});
  CHECK_THROWS_AS(pool.at(4, TimePassed{}), BrokenInvariant);
}
