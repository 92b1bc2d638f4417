#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <thread>

#include "tests/planning/random_case.h"
#include "tests/planning/tables.h"

using namespace batchwright;
using namespace batchwright::testing;

namespace {

constexpr std::uint64_t kCases = 400;

EpochPlan planned(const RandomCase& made) {
  auto plan = plan_epoch(made.lengths, made.settings, made.epoch);
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  return *plan;
}

std::vector<std::uint64_t> flat(const std::vector<std::vector<std::uint64_t>>& batches) {
  std::vector<std::uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

std::vector<std::uint64_t> sorted_flat(const EpochPlan& plan) {
  auto all = flat(batches_of(plan));
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::vector<std::uint64_t>> sorted_batches(const EpochPlan& plan) {
  auto all = batches_of(plan);
  std::sort(all.begin(), all.end());
  return all;
}

/// Frames that a batch of `rows` costs, in the measure of its capacity.
double cost(const RandomCase& made, std::uint64_t rows, std::uint32_t longest) {
  const double frames = longest;
  const double row = made.settings.cut == Cut::quadratic
                         ? frames + std::floor(frames * frames / made.settings.quadratic_scale)
                         : frames;
  return static_cast<double>(rows) * row;
}

double capacity(const RandomCase& made) {
  const auto longest = *std::max_element(made.lengths.begin(), made.lengths.end());
  return made.settings.cut == Cut::dynamic ? static_cast<double>(made.settings.size) * longest
                                           : static_cast<double>(made.settings.max_frames);
}

}  // namespace

TEST_CASE("planning: every sequence comes exactly once an epoch") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    const RandomCase made = random_case(number);
    std::vector<std::uint64_t> all(made.lengths.size());
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    CHECK(sorted_flat(planned(made)) == all);
  }
}

TEST_CASE("planning: no batch is above capacity, and no bound is broken") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    const RandomCase made = random_case(number);
    const EpochPlan plan = planned(made);
    const auto bound = plan_bound(made.lengths, made.settings);
    REQUIRE(bound);
    for (std::uint64_t index = 0; index < plan.batches(); ++index) {
      const BatchFigures batch = plan.figures(BatchIndex{index});
      CHECK(batch.rows <= bound->rows);
      CHECK(std::uint64_t{batch.rows} * batch.batch_length <= bound->padded_frames);
      if (made.settings.max_size != 0) CHECK(batch.rows <= made.settings.max_size);
      if (made.settings.cut == Cut::fixed) CHECK(batch.rows <= made.settings.size);
      if (made.settings.cut == Cut::fixed || made.settings.rule == CutRule::overrun) continue;
      CHECK(cost(made, batch.rows, batch.batch_length) <= capacity(made));
    }
  }
}

TEST_CASE("planning: batches on a grid of lengths stay within capacity and bound") {
  std::uint64_t fitted = 0;
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    made.settings.length_multiple = static_cast<std::uint32_t>(2 + number * 37 % 200);
    for (std::uint32_t& length : made.lengths) {
      length = std::min(length, 2'147'483'647 - made.settings.length_multiple);
    }
    const auto bound = plan_bound(made.lengths, made.settings);
    if (!bound) {  // its longest row alone, on the grid, passes a budget of frames
      CHECK(bound.error().code == ErrorCode::infeasible);
      continue;
    }
    ++fitted;
    const EpochPlan plan = planned(made);
    RandomCase rounded = made;  // whose capacity has the longest on the grid
    for (std::uint32_t& length : rounded.lengths) length = on_grid(made.settings, length);
    std::vector<Row> rows;
    for (std::uint64_t index = 0; index < plan.batches(); ++index) {
      const BatchFigures batch = plan.figures(BatchIndex{index});
      plan.rows(BatchIndex{index}, rows);
      std::uint32_t longest = 0;
      for (const Row& row : rows) longest = std::max(longest, row.length);
      CHECK(batch.batch_length == on_grid(made.settings, longest));
      CHECK(batch.rows <= bound->rows);
      CHECK(std::uint64_t{batch.rows} * batch.batch_length <= bound->padded_frames);
      if (made.settings.cut == Cut::fixed || made.settings.rule == CutRule::overrun) continue;
      CHECK(cost(rounded, batch.rows, batch.batch_length) <= capacity(rounded));
    }
  }
  CHECK(fitted > kCases / 2);
}

TEST_CASE("planning: real frames fill a batch, and padding ends it only at its own bound") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    PlanSettings& s = made.settings;
    const std::uint32_t longest = *std::max_element(made.lengths.begin(), made.lengths.end());
    s.cut = Cut::real_frames;
    s.rule = static_cast<CutRule>(number % 2);
    s.size_multiple = 1;
    s.size = PlanSettings{}.size;
    s.max_size = s.quadratic_scale = 0;
    s.shuffle = Shuffle::off;
    s.max_frames = std::uint64_t{1 + number % 20} * longest;
    s.max_padded = number % 3 == 0 ? 0 : s.max_frames + number % 7 * longest;
    const std::uint64_t padded = s.max_padded == 0 ? 4 * s.max_frames : s.max_padded;
    const EpochPlan plan = planned(made);
    const auto bound = plan_bound(made.lengths, s);
    REQUIRE(bound);
    const bool by_length = s.order == Order::bucket_span || s.order == Order::bucket_optimal;
    const bool overruns = s.rule == CutRule::overrun;
    const auto batches = batches_of(plan);
    std::uint64_t by_padding = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const BatchFigures batch = plan.figures(BatchIndex{i});
      const std::uint32_t last = made.lengths[batches[i].back()];
      CHECK(batch.rows <= bound->rows);
      CHECK(std::uint64_t{batch.rows} * batch.batch_length <= bound->padded_frames);
      CHECK(std::uint64_t{batch.rows} * batch.batch_length <= padded);
      CHECK(batch.frames - (overruns ? last : 0) <= s.max_frames);
      if (by_length || i + 1 == batches.size()) continue;
      const std::uint32_t next = made.lengths[batches[i + 1].front()];
      const bool real = batch.frames + (overruns ? 0 : next) > s.max_frames;
      CHECK(
          (real || (batch.rows + 1) * std::uint64_t{std::max(batch.batch_length, next)} > padded));
      by_padding += batch.frames + next <= s.max_frames ? 1 : 0;
    }
    if (!by_length && !overruns) CHECK(plan.counts().cut_by_padding == by_padding);
  }
}

TEST_CASE("planning: real frames make as many batches of sorted lengths as of random ones") {
  std::vector<std::uint32_t> lengths;
  RandomStream random(7, Stream::select);
  for (int i = 0; i < 3000; ++i) lengths.push_back(100 + random.below(1900));
  const auto batches = [&lengths](std::initializer_list<std::string_view> settings) {
    const auto plan = plan_epoch(lengths, testing::settings(settings), Epoch{0});
    REQUIRE(plan);
    return static_cast<double>(plan->batches());
  };
  const double random_order = batches({"cut=real-frames", "max_frames=20000", "rule=overrun"});
  const double sorted =
      batches({"cut=real-frames", "max_frames=20000", "rule=overrun", "order=sorted"});
  CHECK(std::abs(random_order - sorted) <= 0.01 * sorted);
  CHECK(batches({"cut=frames", "max_frames=20000"}) >
        1.4 * batches({"cut=frames", "max_frames=20000", "order=sorted"}));
}

TEST_CASE("planning: the figures of all batches are those of each, whatever the remainder") {
  const auto check = [](const EpochPlan& plan) {
    std::vector<std::uint64_t> times(plan.batches());
    plan.each_figures([&](BatchIndex index, const BatchFigures& batch) {
      const BatchFigures one = plan.figures(index);
      ++times.at(index.value);
      CHECK(batch.rows == one.rows);
      CHECK(batch.batch_length == one.batch_length);
      CHECK(batch.frames == one.frames);
    });
    CHECK(times == std::vector<std::uint64_t>(plan.batches(), 1));
  };
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    check(planned(made));
    made.settings.remainder = Remainder::wrap;
    made.settings.world = 4;
    check(planned(made));
  }
  const std::vector<std::uint32_t> lengths = {5, 9, 2, 7, 1, 8};
  PlanSettings unrolled;
  unrolled.lanes = 2;
  unrolled.unroll = 3;
  const auto plan = plan_epoch(lengths, unrolled, Epoch{0});
  REQUIRE(plan);
  check(*plan);
}

TEST_CASE("planning: under the strict rule the next sequence would not have fitted") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    PlanSettings& s = made.settings;
    const bool by_length = s.order == Order::bucket_span || s.order == Order::bucket_optimal;
    if (s.cut == Cut::fixed || s.rule == CutRule::overrun || by_length) continue;
    s.shuffle = Shuffle::off;
    s.size_multiple = 1;
    s.max_size = 0;
    const auto batches = batches_of(planned(made));
    for (std::size_t i = 0; i + 1 < batches.size(); ++i) {
      std::uint32_t longest = made.lengths[batches[i + 1].front()];
      for (const std::uint64_t ordinal : batches[i]) {
        longest = std::max(longest, made.lengths[ordinal]);
      }
      CHECK(cost(made, batches[i].size() + 1, longest) > capacity(made));
    }
  }
}

TEST_CASE("planning: a batch of at least the multiple has a multiple of it as size") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    const RandomCase made = random_case(number);
    for (const auto& batch : batches_of(planned(made))) {
      const bool whole = batch.size() % made.settings.size_multiple == 0;
      CHECK((whole || batch.size() < made.settings.size_multiple));
    }
  }
}

TEST_CASE("planning: shuffling changes no batch's content") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    made.settings.shuffle = Shuffle::off;
    const auto unshuffled = sorted_batches(planned(made));
    for (const Shuffle shuffle : {Shuffle::batches, Shuffle::groups}) {
      made.settings.shuffle = shuffle;
      CHECK(sorted_batches(planned(made)) == unshuffled);
    }
  }
}

TEST_CASE("planning: equal seed and epoch agree, and seed + epoch is all that counts") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    const std::uint64_t hash = plan_hash(planned(made));
    CHECK(plan_hash(planned(made)) == hash);
    made.settings.seed += made.epoch.value;
    made.epoch = Epoch{0};
    CHECK(plan_hash(planned(made)) == hash);
  }
}

TEST_CASE("planning: many threads at once give the plan that one gives") {
  std::vector<std::uint64_t> alone;
  for (std::uint64_t number = 0; number < 40; ++number) {
    alone.push_back(plan_hash(planned(random_case(number))));
  }
  std::array<std::vector<std::uint64_t>, 8> together;
  std::vector<std::thread> threads;
  for (auto& hashes : together) {
    threads.emplace_back([&hashes] {
      for (std::uint64_t number = 0; number < 40; ++number) {
        const RandomCase made = random_case(number);
        const auto plan = plan_epoch(made.lengths, made.settings, made.epoch);
        hashes.push_back(plan ? plan_hash(*plan) : 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& hashes : together) CHECK(hashes == alone);
}

TEST_CASE("planning: different epochs differ") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    if (made.lengths.size() < 100) continue;  // few sequences have few orders
    const Order order = made.settings.order;
    if (order != Order::random && order != Order::bucket_span && order != Order::bucket_optimal) {
      // Without ties or noise, nothing but the order of the batches differs.
      made.settings.cut = Cut::fixed;
      made.settings.rule = CutRule::strict;
      made.settings.size = 4;
      made.settings.size_multiple = 1;
      made.settings.max_frames = 0;
      made.settings.quadratic_scale = made.settings.max_size = 0;
      made.settings.shuffle = Shuffle::batches;
    }
    const std::uint64_t hash = plan_hash(planned(made));
    ++made.epoch.value;
    CHECK(plan_hash(planned(made)) != hash);
  }
}

TEST_CASE("planning: every rank has the same number of steps") {
  for (std::uint64_t number = 0; number < kCases; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    const std::uint64_t batches = planned(made).batches();
    for (const std::uint32_t world : {2u, 3u, 8u}) {
      made.settings.world = world;
      for (const Remainder remainder : {Remainder::drop, Remainder::spread, Remainder::wrap}) {
        made.settings.remainder = remainder;
        const auto plan = plan_epoch(made.lengths, made.settings, made.epoch);
        if (!plan) {
          // Only what cannot be done at all is refused.
          CHECK(plan.error().code == ErrorCode::infeasible);
          const std::uint64_t needed = (batches + world - 1) / world * world;
          CHECK((remainder == Remainder::drop ? batches < world : made.lengths.size() < needed));
          CHECK(remainder != Remainder::wrap);
          continue;
        }
        CHECK(plan->batches() == plan->steps() * world);
        if (remainder == Remainder::drop) CHECK(plan->batches() == batches - batches % world);
        if (remainder == Remainder::drop) continue;
        CHECK(plan->steps() == (batches + world - 1) / world);
        auto all = sorted_flat(*plan);
        if (remainder == Remainder::spread) CHECK(all.size() == made.lengths.size());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        CHECK(all.size() == made.lengths.size());
      }
    }
  }
}

TEST_CASE("planning: jobs of 8, 4, 2 and 1 ranks see the same global steps") {
  RandomCase made = random_case(5);
  made.lengths.resize(500, 77);
  made.settings = PlanSettings{};
  made.settings.size = 4;
  made.settings.world = 8;
  const EpochPlan plan = planned(made);
  for (std::uint64_t step = 0; step < plan.steps(); ++step) {
    std::vector<std::vector<std::uint64_t>> seen;  // by size of the job
    for (const std::uint64_t ranks : {8u, 4u, 2u, 1u}) {
      std::vector<std::uint64_t> content;
      std::vector<Row> rows;
      const std::uint64_t own = plan.world() / ranks;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        for (std::uint64_t i = rank * own; i < (rank + 1) * own; ++i) {
          plan.rows(BatchIndex{step * plan.world() + i}, rows);
          for (const Row& row : rows) content.push_back(row.ordinal);
        }
      }
      seen.push_back(content);
    }
    for (const auto& content : seen) CHECK(content == seen.front());
  }
}

TEST_CASE("planning: special cases of other orders equal sorted") {
  for (std::uint64_t number = 0; number < 100; ++number) {
    CAPTURE(number);
    RandomCase made = random_case(number);
    made.settings = PlanSettings{};
    made.settings.seed = number;
    made.settings.order = Order::sorted;
    const auto sorted = batches_of(planned(made));

    RandomCase noiseless = made;
    noiseless.settings.order = Order::semi_sorted;
    noiseless.settings.randomization = 0;
    CHECK(batches_of(planned(noiseless)) == sorted);

    RandomCase bucket = made;
    bucket.settings.order = Order::bucket;
    bucket.settings.bucket_size = bucket.settings.size;
    auto shuffled_within = batches_of(planned(bucket));
    for (auto& batch : shuffled_within) std::sort(batch.begin(), batch.end());
    auto expected = sorted;
    for (auto& batch : expected) std::sort(batch.begin(), batch.end());
    CHECK(shuffled_within == expected);

    RandomCase one_bin = made;
    one_bin.settings.order = Order::alternated;
    one_bin.settings.bins = 1;
    std::vector<std::uint32_t> ascending;
    for (const std::uint64_t ordinal : flat(batches_of(planned(one_bin)))) {
      ascending.push_back(made.lengths[ordinal]);
    }
    std::vector<std::uint32_t> descending;
    for (const std::uint64_t ordinal : flat(sorted)) descending.push_back(made.lengths[ordinal]);
    std::reverse(descending.begin(), descending.end());
    CHECK(ascending == descending);
  }
}
