#include "daemon/planning/buckets.h"

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

/// Least cost of the classes up to one place, in frames: a line per place where the last bucket may
/// begin. Line i at length v: cost[i] + v * (items up to here - items up to i).
class LowerHull {
 public:
  LowerHull(const std::vector<std::uint64_t>& cost, const std::vector<std::uint64_t>& items)
      : cost_(cost), items_(items) {}

  void add(std::uint32_t line) {
    std::uint64_t from = 0;
    while (!lines_.empty() && (from = lower_from(lines_.back().line, line)) <= lines_.back().from) {
      lines_.pop_back();
    }
    lines_.push_back({line, lines_.empty() ? 0 : from});
    best_ = std::min(best_, lines_.size() - 1);
  }

  /// The lowest line at `length`, the first added if several are. Lengths must grow.
  std::uint32_t lowest(std::uint64_t length) {
    while (best_ + 1 < lines_.size() && lines_[best_ + 1].from <= length) ++best_;
    return lines_[best_].line;
  }

 private:
  struct Piece {
    std::uint32_t line;
    std::uint64_t from;  ///< The first length at which it lies below the piece before it.
  };

  /// The first length at which the later line is lower.
  std::uint64_t lower_from(std::uint32_t earlier, std::uint32_t later) const {
    if (cost_[later] < cost_[earlier]) return 0;
    return (cost_[later] - cost_[earlier]) / (items_[later] - items_[earlier]) + 1;
  }

  const std::vector<std::uint64_t>& cost_;
  const std::vector<std::uint64_t>& items_;
  std::vector<Piece> lines_;
  std::size_t best_ = 0;
};

/// Places in [0, classes]: place p is behind the p-th class. A bucket is a pair of places.
class BoundaryFinder {
 public:
  explicit BoundaryFinder(const LengthClasses& classes)
      : lengths_(classes.lengths),
        items_(lengths_.size() + 1),
        cost_(items_.size()),
        next_cost_(items_.size()),
        middle_(items_.size()),
        next_middle_(items_.size()) {
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      items_[i + 1] = items_[i] + classes.counts[i];
    }
  }

  /// Appends where the buckets between two places end, but for the last.
  void find(std::uint32_t begin, std::uint32_t end, std::uint32_t buckets,
            std::vector<std::uint32_t>& ends) {
    if (buckets <= 1) return;
    const std::uint32_t half = buckets / 2;
    const std::uint32_t middle = place_after(begin, end, buckets, half);
    find(begin, middle, half, ends);
    ends.push_back(middle);
    find(middle, end, buckets - half, ends);
  }

 private:
  /// Where bucket number `half` of `buckets` ends when [begin, end] is cut best.
  std::uint32_t place_after(std::uint32_t begin, std::uint32_t end, std::uint32_t buckets,
                            std::uint32_t half) {
    for (std::uint32_t p = begin + 1; p <= end; ++p) {
      cost_[p] = lengths_[p - 1] * (items_[p] - items_[begin]);
      middle_[p] = p;
    }
    for (std::uint32_t layer = 2; layer <= buckets; ++layer) {
      LowerHull hull(cost_, items_);
      for (std::uint32_t p = begin + layer; p <= end; ++p) {
        hull.add(p - 1);
        const std::uint64_t length = lengths_[p - 1];
        const std::uint32_t from = hull.lowest(length);
        next_cost_[p] = cost_[from] + length * (items_[p] - items_[from]);
        next_middle_[p] = layer <= half ? p : middle_[from];
      }
      std::swap(cost_, next_cost_);
      std::swap(middle_, next_middle_);
    }
    return middle_[end];
  }

  const std::vector<std::uint32_t>& lengths_;
  std::vector<std::uint64_t> items_;  ///< Of the classes before each place.
  std::vector<std::uint64_t> cost_, next_cost_;
  std::vector<std::uint32_t> middle_, next_middle_;
};

}  // namespace

std::vector<std::uint32_t> optimal_boundaries(const LengthClasses& classes, std::uint32_t count) {
  const auto places = static_cast<std::uint32_t>(classes.lengths.size());
  std::vector<std::uint32_t> ends;
  BoundaryFinder(classes).find(0, places, std::min(count, places), ends);
  ends.push_back(places);
  for (std::uint32_t& end : ends) end = classes.lengths[end - 1];
  return ends;
}

}  // namespace batchwright
