#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchwright {

/// The longest length of each bucket: multiples of a span, or a list. One bucket if neither is.
struct BucketLimits {
  std::uint32_t span = 0;
  std::vector<std::uint32_t> list;  ///< Growing; the last is at least as long as any item.

  bool has_any() const { return span != 0 || !list.empty(); }
  std::uint32_t of(std::uint32_t length) const {
    if (span != 0) return ((length - 1) / span + 1) * span;
    return *std::lower_bound(list.begin(), list.end(), length);
  }
};

/// Lengths that occur, growing, and how many items there are up to each and with it. Where nearly
/// all lengths differ, `ends` is empty: then each length is of one item, and may come again.
struct LengthClasses {
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> ends;

  /// The number of items with the first `place` lengths.
  std::uint64_t items(std::size_t place) const {
    return ends.empty() ? place : place == 0 ? 0 : ends[place - 1];
  }
};

/// The classes of any number of lengths, `least` to `most`. `each(use)` calls use(length) with
/// each; it is called once or twice. Cost: O(n) time where the lengths lie close together, else
/// that of sorting; at most 8 bytes a length, of which 4 are kept.
template <class Each>
LengthClasses classes_of(std::size_t count, std::uint32_t least, std::uint32_t most,
                         const Each& each);
LengthClasses classes_of_counts(std::size_t count, std::uint32_t least,
                                const std::vector<std::uint32_t>& counts);
LengthClasses classes_of_lengths(std::vector<std::uint32_t> lengths);

/// The longest length of each of `count` buckets, such that every item padded to the longest of
/// its bucket makes the fewest frames. Fewer when fewer lengths occur. Of several best sets it is
/// the one whose last bucket begins earliest, then whose last but one does, and so on.
/// Cost: O(classes * log(frames)) time, 8 bytes a class and about 2 for the hull.
std::vector<std::uint32_t> optimal_boundaries(const LengthClasses& classes, std::uint32_t count);

template <class Each>
LengthClasses classes_of(std::size_t count, std::uint32_t least, std::uint32_t most,
                         const Each& each) {
  if (most - least < count) {
    std::vector<std::uint32_t> counts(most - least + 1);
    each([&](std::uint32_t length) { ++counts[length - least]; });
    return classes_of_counts(count, least, counts);
  }
  std::vector<std::uint32_t> lengths;
  lengths.reserve(count);
  each([&](std::uint32_t length) { lengths.push_back(length); });
  return classes_of_lengths(std::move(lengths));
}

}  // namespace batchwright
