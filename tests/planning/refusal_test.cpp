#include <doctest/doctest.h>

#include <limits>
#include <map>

#include "tests/planning/tables.h"

using namespace batchwright;

namespace {

/// The message with which planning is refused; empty if it is not.
std::string refusal(const std::vector<std::uint32_t>& lengths, const PlanSettings& settings) {
  const auto plan = plan_epoch(lengths, settings, Epoch{0});
  const auto bound = plan_bound(lengths, settings);
  if (!plan && !bound) CHECK(plan.error().message == bound.error().message);
  return plan ? "" : plan.error().message;
}

std::string contradiction(std::initializer_list<std::string_view> texts) {
  const auto checked = check_settings(testing::settings(texts));
  return checked ? "" : checked.error().message;
}

}  // namespace

TEST_CASE("planning: contradictory settings are refused with what they need") {
  CHECK(contradiction({"order=sorted", "bins=8"}) ==
        "bins = 8 has a meaning only with order = alternated");
  CHECK(contradiction({"order=alternated"}) == "order = alternated needs bins");
  CHECK(contradiction({"order=bucket-span"}) ==
        "order = bucket-span needs either bucket_span or bucket_boundaries");
  CHECK(contradiction({"order=random", "randomization=0.3"}) ==
        "randomization = 0.3 has a meaning only with order = semi-sorted");
  CHECK(contradiction({"cut=frames"}) == "cut = frames, quadratic or real-frames needs max_frames");
  CHECK(contradiction({"cut=real-frames", "max_frames=100", "max_padded=99"}) ==
        "max_padded = 99 must not be below max_frames = 100");
  CHECK(contradiction({"cut=frames", "max_frames=100", "max_padded=200"}) ==
        "max_padded = 200 has a meaning only with cut = real-frames");
  CHECK(contradiction({"cut=frames", "max_frames=100", "size=4"}) ==
        "size = 4 has a meaning only with cut = fixed or dynamic");
  CHECK(contradiction({"rule=overrun"}) ==
        "rule = overrun has a meaning only with cut = dynamic, frames, quadratic or "
        "real-frames");
  CHECK(contradiction({"lanes=4", "unroll=10", "length_multiple=8"}) ==
        "length_multiple = 8 has a meaning only with batches without lanes, whose length is "
        "unroll");
  CHECK(contradiction({"size=10", "size_multiple=8"}) ==
        "size = 10 must be a multiple of size_multiple = 8");
  CHECK(contradiction({"min_length=9", "max_length=8"}) ==
        "min_length = 9 must not exceed max_length = 8");
  CHECK(contradiction({"min_chunk=5", "min_length=5"}) ==
        "min_chunk = 5 has a meaning only with chunk");
  CHECK(contradiction({"chunk=10", "min_chunk=11", "min_length=20"}) ==
        "min_chunk = 11 must not exceed chunk = 10");
  CHECK(contradiction({"chunk=10", "min_chunk=5"}) ==
        "min_chunk = 5 needs min_length = 5 or more: shorter sequences would have no chunk");
  CHECK(contradiction({"select=linear", "beta=0.1", "flat_after=9"}) ==
        "floor = 0 leaves one sequence to each epoch after flat_after = 9; set floor above 0, or "
        "epochs = 10 where training ends there");
  CHECK(contradiction({"select=cosine", "lambda=0.1", "flat_after=9", "epochs=10"}) == "");
  CHECK(contradiction({"chunk=10", "hop=11"}) ==
        "hop = 11 must not exceed chunk = 10: frames would be skipped");
  CHECK(contradiction({"lanes=4", "unroll=20", "shuffle=batches"}) ==
        "lanes needs shuffle = off: a lane's rows must stay in order");
  CHECK(contradiction({"lanes=4"}) == "lanes needs unroll");
  CHECK(contradiction({"alpha=0.5"}) == "alpha = 0.5 has a meaning only with select = fixed");
  CHECK(contradiction({"select=linear", "usage=0.5", "flat_after=3"}) == "usage needs epochs");
  CHECK(contradiction({"select=fixed", "usage=0.5", "alpha=0.5"}) ==
        "select = fixed needs either usage or alpha");
}

TEST_CASE("planning: settings that no text could give are refused too") {
  PlanSettings settings;
  SUBCASE("NaN") {
    settings.order = Order::semi_sorted;
    settings.randomization = std::numeric_limits<double>::quiet_NaN();
    CHECK(refusal({5}, settings) == "randomization: found \"nan\", allowed: 0 to 1000000");
  }
  SUBCASE("no rows") {
    settings.size = 0;
    CHECK(refusal({5}, settings) == "size: found \"0\", allowed: 1 to 2147483647");
  }
  SUBCASE("no world") {
    settings.world = 0;
    CHECK(refusal({5}, settings) == "world: found \"0\", allowed: 1 to 65536");
  }
}

TEST_CASE("planning: lengths that cannot be planned are refused") {
  const PlanSettings plain;
  CHECK(refusal({}, plain) == "no sequences to plan");
  CHECK(refusal({5, 0, 3}, plain) == "sequence 1 has 0 frames, allowed: 1 to 2147483647");
  // With min_length it is one of those that are too short.
  const auto left_out = plan_epoch(std::vector<std::uint32_t>{5, 0, 3},
                                   testing::settings({"min_length=1"}), Epoch{0});
  REQUIRE(left_out);
  CHECK(left_out->counts().left_out == 1);
  CHECK(refusal({5, 4294967295}, plain) ==
        "sequence 1 has 4294967295 frames, allowed: 1 to 2147483647");
  CHECK(refusal({5, 6}, testing::settings({"min_length=7"})) ==
        "min_length = 7 leaves out every sequence; they have 5 to 6 frames");
  CHECK(refusal({5, 6}, testing::settings({"max_length=4"})) ==
        "max_length = 4 leaves out every sequence; they have 5 to 6 frames");
  CHECK(refusal({5, 8}, testing::settings({"min_length=6", "max_length=7"})) ==
        "min_length = 6 and max_length = 7 leave out every sequence; they have 5 to 8 frames");
}

TEST_CASE("planning: a product of rows and frames that overflows is refused") {
  // 2^31 - 1 frames in chunks that overlap almost wholly: more rows than there are numbers for.
  const auto plan = plan_epoch(std::vector<std::uint32_t>(3, 2147483647),
                               testing::settings({"chunk=1000", "hop=1"}), Epoch{0});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message == "chunk = 1000 and hop = 1 make more than 4294967295 chunks");
  // The largest batch that can be asked for is counted without overflow.
  const auto bound = plan_bound(std::vector<std::uint32_t>(3, 2147483647),
                                testing::settings({"cut=dynamic", "size=2147483647"}));
  REQUIRE(bound);
  CHECK(bound->padded_frames == std::uint64_t{3} * 2147483647);
}

TEST_CASE("planning: more buckets or bins than rows are refused") {
  CHECK(refusal({5, 6, 7}, testing::settings({"order=bucket-optimal", "bucket_count=4"})) ==
        "bucket_count = 4 is more than the epoch's 3 rows, allowed: 1 to 3");
  CHECK(refusal({5, 6, 7}, testing::settings({"order=alternated", "bins=4"})) ==
        "bins = 4 is more than the epoch's 3 rows, allowed: 1 to 3");
}

TEST_CASE("planning: boundaries that end below the longest sequence are refused") {
  CHECK(refusal({5, 60}, testing::settings({"order=bucket-span", "bucket_boundaries=10,20"})) ==
        "bucket_boundaries end at 20, and the longest row has 60 frames: add a boundary, or set "
        "max_length");
}

TEST_CASE("planning: a sequence above the budget is refused until max_length leaves it out") {
  const std::vector<std::uint32_t> lengths = {10, 150, 20, 101, 99};
  CHECK(refusal(lengths, testing::settings({"cut=real-frames", "max_frames=100"})) ==
        refusal(lengths, testing::settings({"cut=frames", "max_frames=100"})));
  CHECK(refusal(lengths, testing::settings({"cut=frames", "max_frames=100"})) ==
        "2 of 5 sequences exceed max_frames = 100, the longest with 150 frames; max_length = "
        "100 would leave them out");
  const auto plan = plan_epoch(
      lengths, testing::settings({"cut=frames", "max_frames=100", "max_length=99"}), Epoch{0});
  REQUIRE(plan);
  CHECK(plan->counts().left_out == 2);
  CHECK(
      refusal(lengths, testing::settings({"cut=quadratic", "max_frames=100", "quadratic_scale=50"}))
          .starts_with("3 of 5 sequences exceed max_frames = 100"));
}

TEST_CASE("planning: infeasible sweeping is refused with the feasible range") {
  CHECK(refusal({5}, testing::settings({"select=linear", "usage=0.65", "flat_after=7", "floor=0.2",
                                        "epochs=16"})) ==
        "usage = 0.65 with flat_after = 7, floor = 0.2 and epochs = 16; feasible: from 0.35 to "
        "below 0.6");
  CHECK(
      refusal({5}, testing::settings({"select=linear", "beta=0.5", "flat_after=7", "floor=0.1"})) ==
      "beta = 0.5 with flat_after = 7 would pass below 0; feasible: above 0, up to 0.14285714");
}

TEST_CASE("planning: fewer batches than world are refused when they would be dropped") {
  CHECK(refusal({5, 6}, testing::settings({"size=1", "world=4"})) ==
        "the epoch has 2 batches, fewer than world = 4, and remainder = drop leaves none: use "
        "spread or wrap");
  CHECK(refusal({5, 6}, testing::settings({"size=1", "world=4", "remainder=spread"})) ==
        "remainder = spread: 2 rows cannot make a multiple of world = 4 batches out of 2");
  CHECK(refusal({5, 6}, testing::settings({"size=4", "last=drop"})) ==
        "2 rows fill no batch and last = drop: use keep, or a smaller batch");
}

TEST_CASE("planning: weights and datasets that do not fit each other are refused") {
  const std::vector<std::uint64_t> datasets = {1, 1};
  const std::vector<std::uint32_t> lengths = {5, 6};
  const auto plan =
      plan_epoch(lengths, testing::settings({"mix_weights=1,2,3"}), Epoch{0}, datasets);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message == "mix_weights has 3 weights for 2 datasets");
}

TEST_CASE("planning: a mixed dataset that gives nothing is named") {
  const auto mixed = [](std::vector<std::uint32_t> lengths, std::vector<std::uint64_t> datasets,
                        std::initializer_list<std::string_view> texts) {
    const auto plan = plan_epoch(lengths, testing::settings(texts), Epoch{0}, datasets);
    return plan ? "" : plan.error().message;
  };
  CHECK(mixed({5, 6}, {2, 0}, {"mix_weights=1,1"}) ==
        "dataset 2 of 2: has no sequences; each that is mixed needs some");
  CHECK(mixed({5, 6}, {2, 0}, {}) == "");
  CHECK(mixed({50, 6, 7}, {1, 2}, {"mix_weights=1,1", "min_length=10"}) ==
        "dataset 2 of 2: min_length = 10 leaves out every sequence; they have 6 to 7 frames");
  CHECK(mixed({50, 6, 7}, {1, 2}, {"mix_weights=1,1", "max_length=10"}) ==
        "dataset 1 of 2: max_length = 10 leaves out every sequence; they have 50 to 50 frames");
}

TEST_CASE("planning: weights so far apart that an epoch would pass all counts are refused") {
  const auto mixed = [](std::vector<std::uint32_t> lengths, std::string_view weights) {
    const std::vector<std::uint64_t> datasets = {1, 1};
    const auto plan = plan_epoch(lengths, testing::settings({weights}), Epoch{0}, datasets);
    return plan ? "" : plan.error().message;
  };
  CHECK(
      mixed({5, 6}, "mix_weights=1e+300,1") ==
      "mix_weights = 1e+300,1 make an epoch of more than 4294967295 sequences: use weights closer "
      "to each other, or mix_exhausted = end");
  CHECK(mixed({2147483647, 6}, "mix_weights=3e9,1") ==
        "3000000000 rows of up to 2147483647 frames: their product passes 2^62 frames");
}

TEST_CASE("planning: settings that an order file decides are refused by name") {
  const auto complaint = [](PlanSettings settings) {
    const auto checked = check_settings(settings);
    REQUIRE_FALSE(checked);
    return checked.error().message;
  };
  CHECK(complaint(testing::settings({"order=file"})) == "order = file needs order_file");
  CHECK(complaint(testing::settings({"order_file=x"})) ==
        "order_file = x has a meaning only with order = file");
  CHECK(complaint(testing::settings({"row_weight=w"})) ==
        "row_weight = w has a meaning only with order = file");
  CHECK(complaint(testing::settings({"cut=file"})) == "cut = file needs order = file");
  for (const auto& [name, value] : std::map<std::string, std::string>{{"select", "fixed"},
                                                                      {"chunk", "5"},
                                                                      {"mix_weights", "1,2"},
                                                                      {"min_length", "2"},
                                                                      {"max_length", "9"},
                                                                      {"shuffle", "batches"}}) {
    PlanSettings settings = testing::settings({"order=file", "order_file=x"});
    REQUIRE(set_setting(settings, name, value));
    CHECK(complaint(settings) == name + " = " + value +
                                     " has a meaning only with an order that is not file: the file "
                                     "has the rows as they come");
  }
  for (const auto& [name, value] : std::map<std::string, std::string>{{"size_multiple", "2"},
                                                                      {"max_size", "7"},
                                                                      {"last", "drop"},
                                                                      {"remainder", "wrap"},
                                                                      {"size", "9"},
                                                                      {"max_frames", "9"},
                                                                      {"rule", "overrun"}}) {
    PlanSettings settings = testing::settings({"order=file", "order_file=x", "cut=file"});
    REQUIRE(set_setting(settings, name, value));
    CHECK(complaint(settings).starts_with(name + " = " + value + " has a meaning only with "));
  }
  CHECK_FALSE(check_settings(testing::settings({"order=file", "order_file=x", "bins=3"})));
  CHECK(check_settings(testing::settings({"order=file", "order_file=x", "cut=file", "seed=3"})));
}
