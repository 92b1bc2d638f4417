#include "daemon/planning/stages/buckets.h"

#include <algorithm>
#include <deque>
#include <utility>

// Boundaries after Khomenko et al. (2016). A table of the best costs for every number of buckets
// takes too long and too much memory. Instead each bucket gets a price in frames: then the best
// buckets of any number are found in one pass, and the higher the price, the fewer they are. The
// gain of one bucket more never grows with their number (the cost fulfils the quadrangle
// inequality), so that some price makes the wanted number one of the best; that is so for a whole
// number, and bisection finds one. A pass looks for the lowest of lines that come by falling slope,
// at growing places: linear time.

namespace batchwright {
namespace {

/// Places in [0, classes]: place p is behind the p-th class. A bucket is a pair of places.
class BoundaryFinder {
 public:
  BoundaryFinder(const LengthClasses& classes, std::uint32_t buckets)
      : classes_(classes), buckets_(buckets), cost_(classes.lengths.size() + 1) {}

  /// The limits, last first.
  std::vector<std::uint32_t> find() {
    std::uint64_t low = 1;  // they all gain something
    std::uint64_t high = most_price() + 1;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      const std::size_t most = most_buckets(middle);
      // This price will do: trace_back() finds the set of so many.
      if (most == buckets_) return trace_back(middle);
      (most > buckets_ ? low : high) = middle;
    }
    most_buckets(low);  // the highest price at which so many are among the best, if not the most
    return trace_back(low);
  }

 private:
  std::uint64_t length(std::size_t place) const { return classes_.lengths[place - 1]; }

  /// The gain of the last bucket is at most the mean of all.
  std::uint64_t most_price() const {
    const std::size_t end = classes_.lengths.size();
    std::uint64_t padding = 0;  // of one bucket
    for (std::size_t p = 1; p <= end; ++p) {
      padding += (length(end) - length(p)) * (classes_.items(p) - classes_.items(p - 1));
    }
    return padding / (buckets_ - 1) + 1;
  }

  /// Fills cost_ with the least cost up to each place when each bucket costs `price` more, and
  /// reached_. The most buckets that cost as little as that over all places; buckets_ + 1 stands
  /// for more, too.
  std::size_t most_buckets(std::uint64_t price) {
    hull_.clear();
    reached_.clear();
    std::size_t of_line = 0;  // buckets up to where the lowest line begins
    for (std::size_t p = 1; p < cost_.size(); ++p) {
      add(static_cast<std::uint32_t>(p - 1));
      const std::uint64_t at = length(p);
      // Lengths grow, so a line that has been passed is lowest nowhere further on.
      while (hull_.size() > 1 && !lies_below(hull_[0], hull_[1], at)) hull_.pop_front();
      const std::uint32_t from = hull_.front();
      cost_[p] = cost_[from] + at * (classes_.items(p) - classes_.items(from)) + price;
      while (of_line < reached_.size() && reached_[of_line] <= from) ++of_line;
      if (of_line == reached_.size() && of_line <= buckets_) {
        reached_.push_back(static_cast<std::uint32_t>(p));
      }
    }
    return reached_.size();
  }

  /// A bucket that begins at place i makes a line: at length v up to place p it costs
  /// cost[i] + v * (items(p) - items(i)). Keeps the lines that are lowest somewhere from here on,
  /// in the order in which they are; of equal ones the last.
  void add(std::uint32_t line) {
    while (!hull_.empty()) {
      const std::uint64_t from = lowest_from(hull_.back(), line);
      // Lowest only behind the longest length: it is never needed.
      if (from > classes_.lengths.back()) return;
      if (hull_.size() == 1 || from > back_from_) {
        back_from_ = from;
        break;
      }
      hull_.pop_back();
      if (hull_.size() > 1) back_from_ = lowest_from(hull_[hull_.size() - 2], hull_.back());
    }
    hull_.push_back(line);
  }

  /// The first length at which the later line is not above the earlier.
  std::uint64_t lowest_from(std::uint32_t earlier, std::uint32_t later) const {
    const std::uint64_t items = classes_.items(later) - classes_.items(earlier);
    // Rounded up: lengths are whole numbers.
    return (cost_[later] - cost_[earlier] + items - 1) / items;
  }

  bool lies_below(std::uint32_t earlier, std::uint32_t later, std::uint64_t at) const {
    return cost_[later] - cost_[earlier] > at * (classes_.items(later) - classes_.items(earlier));
  }

  /// From the end back: of all places where the last of `left` buckets may begin at least cost, the
  /// first. Among them are the places that cost least with one bucket fewer; the most buckets that
  /// do grow from place to place.
  std::vector<std::uint32_t> trace_back(std::uint64_t price) const {
    std::vector<std::uint32_t> limits;
    std::size_t place = cost_.size() - 1;
    for (std::size_t left = buckets_; left > 0; --left) {
      limits.push_back(classes_.lengths[place - 1]);
      std::size_t from = left == 1 ? 0 : reached_[left - 2];
      while (cost_[from] + length(place) * (classes_.items(place) - classes_.items(from)) + price !=
             cost_[place]) {
        ++from;
      }
      place = from;
    }
    return limits;
  }

  const LengthClasses& classes_;
  const std::size_t buckets_;
  std::vector<std::uint64_t> cost_;     ///< Cost in frames, by place.
  std::deque<std::uint32_t> hull_;      ///< Lines, as the places they begin at.
  std::uint64_t back_from_ = 0;         ///< Where the hull's last line is lowest, if it has two.
  std::vector<std::uint32_t> reached_;  ///< The first place with at least 1, 2, ... buckets.
};

}  // namespace

LengthClasses classes_of_counts(std::size_t count, std::uint32_t least,
                                const std::vector<std::uint32_t>& counts) {
  const auto different =
      counts.size() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0u));
  // Then `ends` would cost more memory than the lengths that come twice.
  const bool repeats = different > count / 2;
  LengthClasses classes;
  classes.lengths.reserve(repeats ? count : different);
  if (!repeats) classes.ends.reserve(different);
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    end += counts[i];
    const auto length = least + static_cast<std::uint32_t>(i);
    classes.lengths.resize(repeats ? end : classes.lengths.size() + 1, length);
    if (!repeats) classes.ends.push_back(end);
  }
  return classes;
}

LengthClasses classes_of_lengths(std::vector<std::uint32_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  std::size_t different = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    different += i == 0 || lengths[i] != lengths[i - 1] ? 1 : 0;
  }
  if (different > lengths.size() / 2) return {std::move(lengths), {}};
  LengthClasses classes;
  classes.lengths.reserve(different);
  classes.ends.reserve(different);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i + 1 < lengths.size() && lengths[i] == lengths[i + 1]) continue;
    classes.lengths.push_back(lengths[i]);
    classes.ends.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return classes;
}

std::vector<std::uint32_t> optimal_boundaries(const LengthClasses& classes, std::uint32_t count) {
  std::vector<std::uint32_t> different;
  const auto& lengths = classes.lengths;
  // Stops at one more than `count`: that many already need the search.
  for (std::size_t i = 0; i < lengths.size() && different.size() <= count; ++i) {
    if (i == 0 || lengths[i] != lengths[i - 1]) different.push_back(lengths[i]);
  }
  if (different.size() <= count) return different;
  if (count == 1) return {lengths.back()};
  std::vector<std::uint32_t> limits = BoundaryFinder(classes, count).find();
  std::reverse(limits.begin(), limits.end());
  return limits;
}

}  // namespace batchwright
