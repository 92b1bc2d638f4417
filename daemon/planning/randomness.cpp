#include <algorithm>
#include <limits>
#include <vector>

#include "daemon/planning/report.h"

namespace batchwright {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

/// Pairs out of `count`.
double pairs(std::uint64_t count) {
  const auto n = static_cast<double>(count);
  return n * (n - 1) / 2;
}

/// Calls `use(ordinals)` with the sequences that begin in each batch.
template <class Use>
void each_batch_of_ordinals(const EpochPlan& plan, const Use& use) {
  std::vector<Row> rows;
  std::vector<std::uint64_t> ordinals;
  for (std::uint64_t index = 0; index < plan.batches(); ++index) {
    plan.rows(BatchIndex{index}, rows);
    ordinals.clear();
    for (const Row& row : rows) {
      // A sequence counts where it begins, or one in chunks would count many times.
      if (row.flags & kRowReset) ordinals.push_back(row.ordinal);
    }
    use(index, ordinals);
  }
}

}  // namespace

double Randomness::figure() const {
  // Fewer than by chance is no better than chance, so 1 is the most.
  return shared_again <= shared_by_chance ? 1 : shared_by_chance / shared_again;
}

Randomness measure_randomness(const EpochPlan& plan, const EpochPlan& next) {
  std::vector<std::uint32_t> batch_of;
  double next_pairs = 0;
  std::uint64_t placed = 0;
  each_batch_of_ordinals(next,
                         [&](std::uint64_t index, const std::vector<std::uint64_t>& ordinals) {
                           for (const std::uint64_t ordinal : ordinals) {
                             if (ordinal >= batch_of.size()) batch_of.resize(ordinal + 1, kNowhere);
                             batch_of[ordinal] = static_cast<std::uint32_t>(index);
                           }
                           next_pairs += pairs(ordinals.size());
                           placed += ordinals.size();
                         });

  double shared = 0;
  double again = 0;
  std::vector<std::uint32_t> batches;
  each_batch_of_ordinals(plan, [&](std::uint64_t, const std::vector<std::uint64_t>& ordinals) {
    batches.clear();
    for (const std::uint64_t ordinal : ordinals) {
      if (ordinal < batch_of.size() && batch_of[ordinal] != kNowhere) {
        batches.push_back(batch_of[ordinal]);
      }
    }
    std::sort(batches.begin(), batches.end());
    // Sorted, a run of equal batches holds the sequences that meet there again.
    for (auto run = batches.begin(); run != batches.end();) {
      const auto end = std::upper_bound(run, batches.end(), *run);
      again += pairs(static_cast<std::uint64_t>(end - run));
      run = end;
    }
    shared += pairs(batches.size());
  });
  return {shared == 0 ? 0 : again / shared, placed < 2 ? 0 : next_pairs / pairs(placed)};
}

}  // namespace batchwright
