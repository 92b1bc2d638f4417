#include "daemon/live/batches.h"

#include <algorithm>
#include <limits>
#include <span>

#include "daemon/planning/planning.h"

namespace batchwright {
namespace {

using Item = std::vector<StepRow>;
using Starts = std::vector<std::size_t>;  ///< The first item of each batch.

bool is_before(const StepRow& a, const StepRow& b) {
  return a.length != b.length ? a.length > b.length : a.arrival < b.arrival;
}

/// What a batch costs: padded frames, or those and their squares.
class BatchCost {
 public:
  explicit BatchCost(const LiveSettings& settings)
      : scale_(settings.cut == Cut::quadratic ? settings.quadratic_scale : 0) {}

  void add(const Item& item) {
    rows_ += item.size();
    longest_ = std::max<std::uint64_t>(longest_, item.front().length);
  }

  /// At most 2^63, which only rows that no pool holds cost.
  std::uint64_t value() const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
    const std::uint64_t row = longest_ + (scale_ == 0 ? 0 : longest_ * longest_ / scale_);
    return rows_ != 0 && row > kMost / rows_ ? kMost : rows_ * row;
  }

 private:
  std::uint64_t scale_;
  std::uint64_t rows_ = 0;
  std::uint64_t longest_ = 0;
};

Starts equal_rows(std::size_t items, std::size_t world) {
  Starts starts;
  for (std::size_t i = 0; i < world; ++i) {
    starts.push_back(i * (items / world) + std::min(i, items % world));
  }
  return starts;
}

Starts cut_by(const std::vector<Item>& items, const BatchCost& none, std::uint64_t capacity) {
  Starts starts;
  BatchCost cost = none;
  for (std::size_t i = 0; i < items.size(); ++i) {
    BatchCost with = cost;
    with.add(items[i]);
    if (starts.empty() || with.value() > capacity) {
      starts.push_back(i);
      with = none;
      with.add(items[i]);
    }
    cost = with;
  }
  return starts;
}

/// The least capacity that makes no more than `world` batches.
Starts equal_cost(const std::vector<Item>& items, const LiveSettings& settings) {
  const BatchCost none(settings);
  BatchCost all = none;
  std::uint64_t low = 0;
  for (const Item& item : items) {
    BatchCost one = none;
    one.add(item);
    low = std::max(low, one.value());
    all.add(item);
  }
  for (std::uint64_t high = all.value(); low < high;) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (cut_by(items, none, middle).size() <= settings.world) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return cut_by(items, none, low);
}

/// Splits batches, that with most rows first, until there are `world`: as remainder = spread.
void spread(const std::vector<Item>& items, std::size_t world, Starts& starts) {
  while (starts.size() < world) {
    std::size_t largest = 0, most_rows = 0, half = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : items.size();
      const std::size_t count = end - starts[i];
      std::size_t rows = 0;
      for (std::size_t item = starts[i]; item < end; ++item) rows += items[item].size();
      if (count < 2 || rows <= most_rows) continue;
      largest = i;
      most_rows = rows;
      half = count - count / 2;
    }
    must(half != 0, "a step has an item for each batch");
    starts.insert(starts.begin() + static_cast<std::ptrdiff_t>(largest) + 1,
                  starts[largest] + half);
  }
}

}  // namespace

std::vector<std::vector<StepRow>> cut_step(const LiveSettings& settings, std::uint64_t step,
                                           std::vector<std::vector<StepRow>> items) {
  for (Item& item : items) std::ranges::sort(item, is_before);
  std::ranges::sort(items,
                    [](const Item& a, const Item& b) { return is_before(a.front(), b.front()); });
  const std::size_t count = items.size();
  for (std::size_t i = 0; count + i < settings.world; ++i) {
    StepRow filler = items[i % count].front();
    filler.counts = false;
    items.push_back({filler});
  }
  Starts starts = settings.cut == Cut::fixed ? equal_rows(items.size(), settings.world)
                                             : equal_cost(items, settings);
  spread(items, settings.world, starts);

  std::vector<std::vector<StepRow>> batches;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : items.size();
    auto& rows = batches.emplace_back();
    for (std::size_t item = starts[i]; item < end; ++item) {
      rows.insert(rows.end(), items[item].begin(), items[item].end());
    }
  }
  RandomStream random(settings.seed + step, Stream::ranks);
  permute(std::span(batches), random);
  return batches;
}

}  // namespace batchwright
