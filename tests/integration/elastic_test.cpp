#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kWorld = 8;
constexpr std::size_t kSequences = 100;

/// 100 sequences in batches of 3: 34 of them, two more than four steps of a world of 8.
std::string plan_with(const std::string& remainder) {
  return "[feed.plan]\norder = \"semi-sorted\"\nsize = 3\nseed = 5\nworld = 8\n"
         "shuffle = \"groups\"\nremainder = \"" +
         remainder + "\"\n";
}

/// What one global step contains, whichever rank took it.
struct GlobalStep {
  std::vector<std::uint64_t> indices;
  std::vector<std::uint64_t> ordinals;
  friend bool operator==(const GlobalStep&, const GlobalStep&) = default;
};

using GlobalSteps = std::map<std::pair<std::uint64_t, std::uint64_t>, GlobalStep>;

GlobalSteps global_steps(const std::vector<SeenBatch>& batches) {
  GlobalSteps steps;
  for (const SeenBatch& batch : batches) {
    GlobalStep& step = steps[{batch.epoch, batch.step}];
    step.indices.push_back(batch.index);
    for (const SeenRow& row : batch.rows) step.ordinals.push_back(row.ordinal);
  }
  for (auto& [place, step] : steps) {
    std::sort(step.indices.begin(), step.indices.end());
    std::sort(step.ordinals.begin(), step.ordinals.end());
  }
  return steps;
}

/// Each step of each epoch has the world's batches, none twice, one step after the other.
void check_steps(const GlobalSteps& steps, std::uint64_t epochs, std::uint64_t steps_an_epoch) {
  CHECK(steps.size() == epochs * steps_an_epoch);
  for (const auto& [place, step] : steps) {
    std::vector<std::uint64_t> indices(kWorld);
    std::iota(indices.begin(), indices.end(), place.second * kWorld);
    CHECK(step.indices == indices);
  }
}

/// How often an epoch uses each sequence.
std::vector<std::uint64_t> uses(const std::vector<SeenBatch>& batches) {
  std::vector<std::uint64_t> times(kSequences);
  for (const std::uint64_t ordinal : sorted_ordinals(batches)) ++times.at(ordinal);
  return times;
}

}  // namespace

TEST_CASE("integration: jobs of 8, 4, 2 and 1 ranks see the same global steps") {
  for (const std::string remainder : {"drop", "spread", "wrap"}) {
    CAPTURE(remainder);
    DaemonProcess daemon(plan_with(remainder), kSequences);
    REQUIRE(daemon.start());
    const auto all = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8});
    const GlobalSteps expected = global_steps(all);
    check_steps(expected, 2, remainder == "drop" ? 4 : 5);
    CHECK(expected.at({0, 0}).ordinals != expected.at({1, 0}).ordinals);
    for (const std::int32_t ranks : {4, 2, 1}) {
      CAPTURE(ranks);
      const auto job = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = ranks});
      CHECK(global_steps(job) == expected);
      CHECK(job == all);  // place by place, too
    }
  }
}

TEST_CASE("integration: ranks that hold a batch until all have one need one slot more than ranks") {
  for (const std::string slots : {"9", "10", "13"}) {
    CAPTURE(slots);
    DaemonProcess daemon("slots = " + slots + "\n" + plan_with("spread"), kSequences);
    REQUIRE(daemon.start());
    check_steps(global_steps(take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8})), 2, 5);
  }
}

TEST_CASE("integration: what an epoch of all ranks uses is as remainder says") {
  const auto range = [](const std::string& remainder) {
    DaemonProcess daemon(plan_with(remainder), kSequences);
    REQUIRE(daemon.start());
    const auto times = uses(take_job({daemon.endpoint()}, {.ranks = 8}));
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    const auto all = std::accumulate(times.begin(), times.end(), std::uint64_t{0});
    return std::vector<std::uint64_t>{*least, *most, all};
  };
  const auto dropped = range("drop");
  CHECK(dropped[1] == 1);
  CHECK(dropped[2] >= kSequences - 6);
  CHECK(dropped[2] < kSequences);
  CHECK(range("spread") == std::vector<std::uint64_t>{1, 1, kSequences});
  const auto wrapped = range("wrap");
  CHECK(wrapped[0] == 1);
  CHECK(wrapped[1] == 2);
  CHECK(wrapped[2] >= kSequences + 6);
}

TEST_CASE("integration: a job of 8 ranks goes on with 4 and then with 1, and misses nothing") {
  for (const std::string remainder : {"drop", "spread", "wrap"}) {
    CAPTURE(remainder);
    DaemonProcess daemon(plan_with(remainder), kSequences);
    REQUIRE(daemon.start());
    const auto all = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8});
    auto seen = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8}, 1);
    REQUIRE(seen.size() == 8);
    for (auto& batch : take_job({daemon.endpoint()}, {.epochs = 2, .step = 1, .ranks = 4}, 2)) {
      seen.push_back(std::move(batch));
    }
    REQUIRE(seen.size() == 24);
    for (auto& batch : take_job({daemon.endpoint()}, {.epochs = 2, .step = 3, .ranks = 1})) {
      seen.push_back(std::move(batch));
    }
    CHECK(seen == all);
  }
}

TEST_CASE("integration: every rank knows the sums of the global step") {
  DaemonProcess daemon(plan_with("spread"), kSequences);
  REQUIRE(daemon.start());
  struct Sums {
    std::uint64_t sequences = 0, frames = 0, told_sequences = 0, told_frames = 0;
    double weight = 0;
  };
  std::map<std::uint64_t, Sums> steps;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    take(daemon.endpoint(), {.rank = rank, .ranks = 4}, [&steps](const bw_batch* batch) {
      const bw_batch_header& header = *bw_batch_get_header(batch);
      Sums& sums = steps[header.step];
      sums.sequences += header.sequences;
      sums.frames += header.frames;
      sums.told_sequences += header.step_sequences;
      sums.told_frames += header.step_frames;
      sums.weight += header.loss_weight;
    });
  }
  CHECK(steps.size() == 5);
  for (const auto& [step, sums] : steps) {
    CHECK(sums.told_sequences == kWorld * sums.sequences);
    CHECK(sums.told_frames == kWorld * sums.frames);
    CHECK(sums.weight == doctest::Approx(kWorld));
  }
}

TEST_CASE("integration: lanes of a world of 8 stay with their places, whatever the ranks") {
  DaemonProcess daemon("[feed.plan]\nlanes = 2\nunroll = 8\nworld = 8\n", kSequences);
  REQUIRE(daemon.start());
  const auto all = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8});
  REQUIRE(all.size() > 100);
  for (const std::int32_t ranks : {4, 1}) {
    CHECK(take_job({daemon.endpoint()}, {.epochs = 2, .ranks = ranks}) == all);
  }
  auto seen = take_job({daemon.endpoint()}, {.epochs = 2, .ranks = 8}, 7);
  for (auto& batch : take_job({daemon.endpoint()}, {.epochs = 2, .step = 7, .ranks = 2})) {
    seen.push_back(std::move(batch));
  }
  CHECK(seen == all);
}
