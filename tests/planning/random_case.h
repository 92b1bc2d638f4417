#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/planning/planning.h"
#include "daemon/planning/rng.h"

namespace batchwright::testing {

/// One of many plans that properties are tried on.
struct RandomCase {
  std::vector<std::uint32_t> lengths;
  PlanSettings settings;
  Epoch epoch;
};

inline std::vector<std::uint32_t> random_lengths(RandomStream& random) {
  const std::size_t counts[] = {1, 2, 3, 17, 100, 1000, 3000};
  const std::uint32_t spans[] = {1, 2, 10, 500, 100'000, 2'000'000'000};
  std::vector<std::uint32_t> lengths(counts[random.below(7)]);
  const std::uint32_t span = spans[random.below(6)];
  for (std::uint32_t& length : lengths) length = 1 + random.below(span);
  return lengths;
}

inline void random_order(PlanSettings& s, RandomStream& random, std::size_t rows) {
  s.order = static_cast<Order>(random.below(7));
  const auto up_to_rows = static_cast<std::uint32_t>(1 + random.below(rows));
  if (s.order == Order::semi_sorted) s.randomization = random.below(1000) / 300.0;
  if (s.order == Order::alternated) s.bins = up_to_rows;
  if (s.order == Order::bucket) s.bucket_size = up_to_rows;
  if (s.order == Order::bucket_span) s.bucket_span = 1 + random.below(1000);
  if (s.order == Order::bucket_optimal) s.bucket_count = std::min(up_to_rows, 20u);
}

inline void random_cut(PlanSettings& s, RandomStream& random, std::uint32_t longest) {
  s.cut = static_cast<Cut>(random.below(4));
  s.size_multiple = random.below(3) == 0 ? 1 + random.below(8) : 1;
  const std::uint32_t size = s.size_multiple * (1 + random.below(20));
  if (s.cut == Cut::fixed || s.cut == Cut::dynamic) s.size = size;
  if (s.cut == Cut::frames) s.max_frames = std::uint64_t{size} * longest;
  if (s.cut == Cut::quadratic) {
    s.quadratic_scale = longest;  // the longest costs twice its frames
    s.max_frames = std::uint64_t{2} * size * longest;
  }
  if (s.cut != Cut::fixed) s.rule = static_cast<CutRule>(random.below(2));
  if (s.cut != Cut::fixed && random.below(3) == 0) s.max_size = s.size_multiple + random.below(40);
}

/// Settings without select and chunk: every sequence is a row.
inline RandomCase random_case(std::uint64_t number) {
  RandomStream random(number, Stream::select);
  RandomCase made;
  made.lengths = random_lengths(random);
  random_order(made.settings, random, made.lengths.size());
  random_cut(made.settings, random, *std::max_element(made.lengths.begin(), made.lengths.end()));
  made.settings.shuffle = static_cast<Shuffle>(random.below(3));
  made.settings.seed = random.next();
  made.epoch = Epoch{random.below(1000)};
  return made;
}

/// The batches of a plan, each as its ordinals.
inline std::vector<std::vector<std::uint64_t>> batches_of(const EpochPlan& plan) {
  std::vector<std::vector<std::uint64_t>> all;
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    all.emplace_back();
    for (const Row& row : rows) all.back().push_back(row.ordinal);
  }
  return all;
}

/// FNV-1a over every row of a plan in the order of delivery.
inline std::uint64_t plan_hash(const EpochPlan& plan) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001B3u; };
  std::vector<Row> rows;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    add(rows.size());
    for (const Row& row : rows) {
      add(row.ordinal);
      add(row.start);
      add(row.length);
      add(row.flags);
    }
  }
  return hash;
}

}  // namespace batchwright::testing
