// Sequences that no daemon hears of.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/client/produce/live_script.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Sequences that are sound except for what a test does to one.
struct Bad {
  Bad() {
    std::size_t accepted = 0;
    REQUIRE(is(run.push(1, accepted), kSettled));
    run.pushes.clear();
    sound = one().values;
    sequence = {"k", 1, one().values.data(), one().values.size()};
  }
  /// Nothing of it was sent, and a sound one can be pushed.
  ~Bad() {
    CHECK(run.pushes.empty());
    CHECK(run.producer().conversation().store()->used() == 256);
    one().values = sound;
    one().frames[3] = one().reward = 1;
    sequence = {"k", 1, one().values.data(), one().values.size()};
    origin = BW_ORIGIN_INIT;
    CHECK(is(push(), kSettled));
  }
  Bad(const Bad&) = delete;
  Bad& operator=(const Bad&) = delete;

  LiveScript::Values& one() { return run.sequences.front(); }
  Result<Producer::Verdict> push() {
    std::size_t accepted = 0;
    return run.producer().push({{&sequence, 1}, &origin}, 1s, accepted);
  }

  LiveScript run;
  std::vector<bw_value> sound;
  bw_sequence sequence{};
  bw_origin origin = BW_ORIGIN_INIT;
};

}  // namespace

TEST_CASE("client: a value that does not fit its field is refused before anything is sent") {
  Bad bad;
  std::vector<bw_value>& values = bad.one().values;
  SUBCASE("a field is missing") {
    bad.sequence.value_count = 3;
    CHECK(says(bad.push(), "key \"k\": found 3 values, the feed has 4 fields"));
  }
  SUBCASE("no values") {
    bad.sequence.values = nullptr;
    CHECK(says(bad.push(), "4 values, and no place where they are"));
  }
  SUBCASE("no frames") {
    values[0] = {nullptr, 0, 0};
    CHECK(says(bad.push(), "no frames"));
  }
  SUBCASE("another length than the primary's") {
    values[1].length = values[1].bytes = 1;
    CHECK(says(bad.push(), "field \"labels\" has length 1, not 2"));
  }
  SUBCASE("a scalar of two") {
    values[3].length = 2;
    CHECK(says(bad.push(), "field \"reward\" has length 2, not 1"));
  }
  SUBCASE("another dtype or shape shows by its bytes") {
    values[0].bytes = 8;
    CHECK(says(bad.push(), "field \"frames\" has 8 bytes, not 16"));
  }
  SUBCASE("bytes without data") {
    values[2].data = nullptr;
    CHECK(says(bad.push(), "field \"text\" has bytes, but no data"));
  }
}

TEST_CASE("client: a sequence that is longer or larger than the feed takes is refused") {
  Bad bad;
  std::vector<bw_value>& values = bad.one().values;
  const std::vector<float> frames(2002);
  const std::vector<std::uint8_t> bytes(9000);
  SUBCASE("frames") {
    values[0] = {frames.data(), 8008, 1001};
    values[1] = {bytes.data(), 1001, 1001};
    CHECK(says(bad.push(), "key \"k\": has 1001 frames; the feed takes at most 1000 (max_length)"));
  }
  SUBCASE("bytes") {
    values[2] = {bytes.data(), 9000, 9000};
    CHECK(says(bad.push(), "key \"k\": has 9022 bytes; the feed takes at most 9000"));
  }
  CHECK(is(bad.push(), ErrorCode::does_not_fit));
}

TEST_CASE("client: a key has 1 to 511 bytes, or there is none") {
  Bad bad;
  const std::string key(512, 'k');
  bad.sequence.key_bytes = 0;
  CHECK(says(bad.push(), "a key has 1 to 511 bytes, found 0"));
  bad.sequence.key = key.data();
  bad.sequence.key_bytes = key.size();
  CHECK(says(bad.push(), "a key has 1 to 511 bytes, found 512"));
  bad.sequence.key = nullptr;
  CHECK(says(bad.push(), "a key of 512 bytes, and no place where they are"));
}

TEST_CASE("client: NaN and infinity are refused, with their place") {
  Bad bad;
  bad.one().frames[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(says(bad.push(),
             "key \"k\": field \"frames\" has NaN or infinity in frame 1, element 1; the "
             "feed takes them only with allow_nan"));
  bad.one().frames[3] = 0;
  bad.one().reward = -std::numeric_limits<float>::infinity();
  CHECK(says(bad.push(), "field \"reward\" has NaN or infinity in frame 0, element 0"));
}

TEST_CASE("client: an origin that cannot be is refused") {
  Bad bad;
  SUBCASE("groups") {
    bad.origin.group = 4;
    CHECK(says(bad.push(), "group 4 has a group_size of 0"));
    bad.origin.group = kNoGroup;
    bad.origin.group_size = 2;
    CHECK(says(bad.push(), "a group_size of 2 and no group"));
  }
  SUBCASE("weights") {
    bad.origin.weight = -1;
    CHECK(says(bad.push(), "weight is -1; 0 and up is allowed"));
    bad.origin.weight = std::numeric_limits<float>::quiet_NaN();
    CHECK(is(bad.push(), ErrorCode::invalid_argument));
  }
  SUBCASE("versions") {
    bad.origin.version = kLastVersion + 1;
    CHECK(says(bad.push(), "is above 2^62"));
    bad.origin.version = 4;
    bad.origin.version_newest = 3;
    CHECK(says(bad.push(), "version_newest is 3, and version is 4, which is newer"));
  }
  SUBCASE("size") {
    bad.origin.struct_size = 1;
    CHECK(says(bad.push(), "struct_size is 1"));
  }
}

TEST_CASE("client: of many sequences the first bad one is named, and what stands before NaN goes") {
  LiveScript run;
  std::size_t accepted = 0;
  REQUIRE(is(run.push(3, accepted), kSettled));
  run.pushes.clear();
  std::vector<bw_sequence> list;
  for (LiveScript::Values& one : run.sequences) {
    list.push_back({"k", 1, one.values.data(), one.values.size()});
  }
  const auto push = [&] { return run.producer().push({list, nullptr}, 1s, accepted); };
  list[1].value_count = 1;
  CHECK(says(push(), "sequence 1: key \"k\": found 1 values"));
  CHECK(accepted == 0);
  CHECK(run.pushes.empty());
  list[1].value_count = 4;
  run.sequences[1].reward = std::nanf("");
  const auto refused = push();
  CHECK(is(refused, ErrorCode::schema_mismatch));
  CHECK(says(refused, "sequence 1: key \"k\": field \"reward\" has NaN"));
  CHECK(accepted == 1);
  CHECK(run.pushes.size() == 1);
  CHECK(run.producer().conversation().store()->used() == 4 * 256);
}

TEST_CASE("client: a feed with allow_nan takes NaN") {
  LiveScript run({.allow_nan = true});
  std::size_t accepted = 0;
  REQUIRE(is(run.push(1, accepted), kSettled));
  LiveScript::Values& one = run.sequences.front();
  one.reward = std::nanf("");
  const bw_sequence sequence{"k", 1, one.values.data(), one.values.size()};
  CHECK(is(run.producer().push({{&sequence, 1}, nullptr}, 1s, accepted), kSettled));
}
