#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "daemon/planning/rng.h"
#include "tests/planning/counted_memory.h"
#include "tests/planning/tables.h"

using namespace batchwright;
using namespace batchwright::testing;

namespace {

constexpr std::uint32_t kSequences = 200'000;
constexpr std::size_t kBesides = 128 * 1024;  ///< Bytes that do not grow with the sequences.

struct Lengths {
  const char* name;
  std::vector<std::uint32_t> frames;
};

/// Lengths that are spread, and those that skew the parts that an order is made of.
std::vector<Lengths> many_lengths() {
  RandomStream random(1, Stream::draw);
  const auto made = [](auto&& length) {
    std::vector<std::uint32_t> frames(kSequences);
    for (std::uint32_t i = 0; i < kSequences; ++i) frames[i] = length(i);
    return frames;
  };
  const auto common = [&random](std::uint32_t) {
    return 200 + random.below(400) + random.below(400);
  };
  std::vector<Lengths> all;
  all.push_back({"common", made(common)});
  all.push_back({"all equal", made([](std::uint32_t) { return 400u; })});
  all.push_back({"two values", made([](std::uint32_t i) { return i % 3 == 0 ? 20u : 2000u; })});
  all.push_back({"heavy tail", made(common)});
  for (std::uint32_t i = 0; i < 20; ++i) all.back().frames[i * 999] = 1u << (11 + i);
  all.push_back({"all different", made([](std::uint32_t i) { return i + 1; })});
  permute(std::span(all.back().frames), random);
  all.push_back(
      {"all different, far apart", made([](std::uint32_t i) { return 10'000 * (i + 1); })});
  permute(std::span(all.back().frames), random);
  return all;
}

/// Settings from "order=sorted size=4".
PlanSettings parsed(const std::string& texts) {
  PlanSettings all;
  std::istringstream words(texts);
  for (std::string text; words >> text;) {
    const auto equals = text.find('=');
    REQUIRE(set_setting(all, text.substr(0, equals), text.substr(equals + 1)));
  }
  return all;
}

/// Plans an epoch of `rows` rows a sequence, and gives the bytes a sequence that it took at its
/// peak.
double peak_bytes(const std::vector<std::uint32_t>& frames, const std::string& texts,
                  double rows = 1) {
  const PlanSettings chosen = parsed(texts);
  begin_counting();
  const auto plan = plan_epoch(frames, chosen, Epoch{1});
  const std::size_t peak = counted_peak_bytes();
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().message));
  // The plan keeps 4 bytes a row and 8 a batch; with lanes 8 a row.
  const auto batches = static_cast<double>(plan->batches());
  CHECK(counted_kept_bytes() <= 8 * (rows * kSequences + batches) + kBesides);
  return static_cast<double>(peak - std::min(peak, kBesides)) / static_cast<double>(frames.size());
}

constexpr const char* kStrategies[] = {
    "order=random",
    "order=sorted",
    "order=semi-sorted cut=dynamic shuffle=batches",
    "order=semi-sorted cut=dynamic rule=overrun shuffle=groups world=8",
    "order=bucket bucket_size=1024",
    "order=bucket-span bucket_span=100000",
    "order=bucket-optimal bucket_count=64",
    "order=alternated bins=1",
    "order=alternated bins=2",
    "order=alternated bins=64",
    "order=sorted size=1",
    "order=semi-sorted size=4 shuffle=groups world=4",
    "order=sorted size=1 shuffle=groups world=3 remainder=wrap",
    "order=sorted size=2 shuffle=groups world=3 remainder=spread",
    "order=bucket-span bucket_span=1 size=4 shuffle=groups",
    "lanes=64 unroll=100000 order=sorted",
    "select=fixed alpha=0.5 order=sorted",
    "select=fixed alpha=0.95 order=semi-sorted",
    "select=fixed alpha=0.9 order=alternated bins=3",
    "select=fixed alpha=0.95 order=alternated bins=1",
    "select=fixed alpha=0.95 order=bucket-optimal bucket_count=64",
    "min_length=20 max_length=1500000000 order=bucket-optimal bucket_count=3",
    "select=fixed alpha=0.9 lanes=64 unroll=100000"};

constexpr const char* kOrders[] = {
    "order=semi-sorted randomization=0.000001",
    "order=bucket-span bucket_span=100000",
    "order=bucket-optimal bucket_count=64",
    "order=alternated bins=1",
    "order=alternated bins=7 cut=dynamic shuffle=groups world=8 remainder=wrap",
    "select=fixed alpha=0.9 order=sorted",
    "select=fixed alpha=0.9 order=bucket-optimal bucket_count=5"};

}  // namespace

TEST_CASE("planning: no strategy takes more than 16 bytes a sequence, however lengths are skewed") {
  for (const Lengths& lengths : many_lengths()) {
    CAPTURE(lengths.name);
    for (const std::string texts : kStrategies) {
      CAPTURE(texts);
      const double peak = peak_bytes(lengths.frames, texts);
      CHECK(peak <= 16);
      CHECK(peak >= 3);  // else it was not counted
    }
  }
}

TEST_CASE("planning: chunks take no more than 16 bytes a sequence if each has but one") {
  for (const Lengths& lengths : many_lengths()) {
    CAPTURE(lengths.name);
    const std::uint32_t longest = *std::max_element(lengths.frames.begin(), lengths.frames.end());
    for (const std::string order : kOrders) {
      CAPTURE(order);
      CHECK(peak_bytes(lengths.frames, order + " chunk=" + std::to_string(longest)) <= 16);
    }
  }
}

TEST_CASE("planning: more chunks than sequences take 9 bytes each, or 14 with best buckets") {
  for (const Lengths& lengths : many_lengths()) {
    CAPTURE(lengths.name);
    const std::uint32_t longest = *std::max_element(lengths.frames.begin(), lengths.frames.end());
    const std::uint32_t chunk = std::max(longest / 4, 100u);
    double all = 0;  // chunks a sequence
    for (const std::uint64_t frames : lengths.frames) {
      all += static_cast<double>((frames + chunk - 1) / chunk) / kSequences;
    }
    for (const std::string order : kOrders) {
      CAPTURE(order);
      const double used = order.starts_with("select") ? 0.9 * all + 0.1 : all;
      const double each = order.find("optimal") == std::string::npos ? 9 : 14;
      CHECK(peak_bytes(lengths.frames, order + " chunk=" + std::to_string(chunk), all) <=
            std::max(16.0, each * used + 0.25 * all));
    }
  }
}

TEST_CASE("planning: a mixed dataset that begins again takes 9 bytes a row, and 4 a sequence") {
  const std::vector<std::uint32_t> frames(kSequences, 400);
  const std::vector<std::uint64_t> datasets = {kSequences - 20'000, 20'000};
  const PlanSettings mixed = parsed("mix_weights=1,1 order=semi-sorted size=16");
  begin_counting();
  const auto plan = plan_epoch(frames, mixed, Epoch{1}, datasets);
  const std::size_t peak = counted_peak_bytes();
  REQUIRE(plan);
  const auto rows = static_cast<double>(plan->counts().selected);
  CHECK(rows == 2 * (kSequences - 20'000));
  CHECK(static_cast<double>(peak) <= 9 * rows + 4 * kSequences + kBesides);
  const auto batches = static_cast<double>(plan->batches());
  CHECK(counted_kept_bytes() <= 8 * (rows + batches) + kBesides);
}
