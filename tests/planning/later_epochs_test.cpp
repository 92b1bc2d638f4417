#include <doctest/doctest.h>

#include "tests/planning/random_case.h"
#include "tests/planning/tables.h"

using namespace batchwright;

namespace {

/// With what message the start is refused; empty if it is not.
std::string refusal(const std::vector<std::uint32_t>& lengths,
                    std::initializer_list<std::string_view> texts,
                    std::span<const std::uint64_t> datasets = {}) {
  const auto settings = testing::settings(texts);
  // What is refused here is not the first epoch's own fault.
  REQUIRE(plan_epoch(lengths, settings, Epoch{0}, datasets));
  const auto bound = plan_bound(lengths, settings, datasets);
  return bound ? "" : bound.error().message;
}

const std::vector<std::uint32_t> kHundred(100, 7);

}  // namespace

TEST_CASE("planning: more bins or buckets than a later epoch's rows are refused at start") {
  CHECK(refusal(kHundred, {"order=alternated", "bins=21", "select=linear", "beta=0.1",
                           "flat_after=4", "floor=0.2"}) ==
        "epoch 5 uses 20 of 100 sequences: bins = 21 is more than the epoch's 20 rows, allowed: 1 "
        "to 20");
  CHECK(refusal(kHundred, {"order=alternated", "bins=20", "select=linear", "beta=0.1",
                           "flat_after=4", "floor=0.2"}) == "");
  CHECK(refusal(kHundred, {"order=bucket-optimal", "bucket_count=31", "select=linear", "beta=0.07",
                           "flat_after=10", "floor=0.5"}) ==
        "epoch 10 uses 30 of 100 sequences: bucket_count = 31 is more than the epoch's 30 rows, "
        "allowed: 1 to 30");
}

TEST_CASE("planning: a later epoch without a whole step is refused at start") {
  const auto sweep = [](std::string_view world, std::string_view remainder) {
    return refusal(kHundred, {"select=cosine", "usage=0.55", "flat_after=7", "floor=0.2",
                              "epochs=16", "size=4", world, remainder});
  };
  CHECK(sweep("world=6", "remainder=drop") ==
        "epoch 8 uses 20 of 100 sequences: the epoch has 5 batches, fewer than world = 6, and "
        "remainder = drop leaves none: use spread or wrap");
  CHECK(sweep("world=5", "remainder=drop") == "");
  CHECK(sweep("world=6", "remainder=wrap") == "");
  CHECK(sweep("world=20", "remainder=spread") == "");
  CHECK(sweep("world=21", "remainder=spread") ==
        "epoch 8 uses 20 of 100 sequences: remainder = spread: 20 rows cannot make a multiple of "
        "world = 21 batches out of 5");
  CHECK(refusal(kHundred, {"select=linear", "beta=0.1", "flat_after=4", "floor=0.2", "size=32",
                           "last=drop"}) ==
        "epoch 5 uses 20 of 100 sequences: 20 rows fill no batch and last = drop: use keep, or a "
        "smaller batch");
}

TEST_CASE("planning: epochs past the last that was told are looked at too") {
  CHECK(refusal(kHundred,
                {"select=linear", "usage=0.7", "flat_after=9", "epochs=10", "size=4", "world=2"}) ==
        "epoch 10, past epochs = 10, uses 1 of 100 sequences: the epoch has 1 batches, fewer than "
        "world = 2, and remainder = drop leaves none: use spread or wrap");
}

TEST_CASE("planning: later epochs of lanes and of mixed datasets are looked at too") {
  CHECK(refusal(kHundred, {"lanes=21", "unroll=5", "last=drop", "select=linear", "beta=0.1",
                           "flat_after=4", "floor=0.2"}) ==
        "epoch 5 uses 20 of 100 sequences: 20 sequences do not fill 21 lanes, and last = drop");
  CHECK(refusal(kHundred,
                {"mix_weights=1,1", "mix_exhausted=end", "order=alternated", "bins=11",
                 "select=linear", "beta=0.1", "flat_after=4", "floor=0.5"},
                std::vector<std::uint64_t>{90, 10}) ==
        "epoch 5 uses 10 of 100 sequences: bins = 11 is more than the epoch's 10 rows, allowed: 1 "
        "to 10");
}

TEST_CASE("planning: what only some epochs' draws cannot do is refused with that epoch") {
  // Epoch 0 draws short sequences of few chunks, or long ones of many: bins may or may not fit.
  std::vector<std::uint32_t> lengths(50, 10);
  for (std::size_t i = 0; i < lengths.size(); i += 2) lengths[i] = 40;
  auto settings = testing::settings(
      {"select=fixed", "alpha=0.2", "chunk=10", "order=alternated", "bins=25", "size=4"});
  bool refused_later = false;
  for (settings.seed = 0; settings.seed < 50 && !refused_later; ++settings.seed) {
    const auto bound = plan_bound(lengths, settings);
    REQUIRE_FALSE(bound);
    const std::string& message = bound.error().message;
    if (!message.starts_with("epoch ")) continue;
    refused_later = true;
    const auto epoch = std::stoull(message.substr(6));
    CHECK(plan_epoch(lengths, settings, Epoch{0}));
    CHECK_FALSE(plan_epoch(lengths, settings, Epoch{epoch}));
  }
  CHECK(refused_later);
  // The longest may be drawn in any epoch.
  const auto bound =
      plan_bound(lengths, testing::settings({"select=fixed", "alpha=0.02", "order=bucket-span",
                                             "bucket_boundaries=10,39"}));
  REQUIRE_FALSE(bound);
  CHECK(bound.error().message.starts_with("bucket_boundaries end at 39"));
}

TEST_CASE("planning: what starts can plan its epochs, and what does not start cannot") {
  int starts = 0;
  int refusals = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    CAPTURE(number);
    auto made = testing::random_case(number);
    RandomStream random(number, Stream::draw);
    if (made.lengths.size() > 200) made.lengths.resize(200);
    PlanSettings& s = made.settings;
    s.select = Select::linear;
    s.flat_after = 1 + random.below(12);
    s.beta = (1 + random.below(1000)) / 1000.0 / s.flat_after;
    s.floor = random.below(100) / 100.0;
    s.world = 1 + random.below(4);
    s.remainder = static_cast<Remainder>(random.below(3));
    s.last = static_cast<LastBatch>(random.below(2));
    const auto plans = [&](std::uint64_t epoch) {
      return plan_epoch(made.lengths, s, Epoch{epoch}).has_value();
    };
    const auto bound = plan_bound(made.lengths, s);
    if (bound) {
      for (std::uint64_t epoch = 0; epoch < 40; ++epoch) CHECK(plans(epoch));
      ++starts;
    } else {
      const std::string& message = bound.error().message;
      CAPTURE(message);
      CHECK_FALSE(plans(message.starts_with("epoch ") ? std::stoull(message.substr(6)) : 0));
      ++refusals;
    }
  }
  CHECK(starts > 50);
  CHECK(refusals > 50);
}

TEST_CASE("planning: a share that rises after flat_after, or falls too slowly, is noted") {
  // 0.143 in epoch 9, 0.2 from epoch 10 on.
  const auto note = [](std::initializer_list<std::string_view> texts) {
    return plan_note(testing::settings(texts));
  };
  CHECK(note({"select=cosine", "usage=0.5", "flat_after=9", "floor=0.2", "epochs=16"}) ==
        "the share of the sequences falls to 0.143 in epoch 9 and rises to floor = 0.2 after it; "
        "a smaller floor or flat_after avoids that");
  CHECK(note({"select=cosine", "usage=0.55", "flat_after=7", "floor=0.2", "epochs=16"}).empty());
  CHECK(note({"select=linear", "beta=0.0625", "flat_after=9", "floor=0.2", "epochs=16"}) ==
        "beta = 0.0625 is not above 0.0625, 1 / epochs, the least of Deng et al.: the share falls "
        "more slowly than theirs");
  CHECK(note({"select=linear", "beta=0.07", "flat_after=9", "floor=0.2", "epochs=16"}).empty());
  CHECK(note({"select=cosine", "lambda=0.09", "flat_after=9", "floor=0.2", "epochs=16"})
            .starts_with("lambda = 0.09 is not above 0.09817, pi/2 / epochs"));
  CHECK(note({"select=fixed", "alpha=0.5"}).empty());
  CHECK(note({}).empty());
}
