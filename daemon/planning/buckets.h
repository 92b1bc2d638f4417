#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchwright {

/// Lengths that occur, growing, and how many items have each.
struct LengthClasses {
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> counts;
};

/// The longest length of each of `count` buckets, such that every item padded to the longest of
/// its bucket makes the fewest frames. Fewer when fewer lengths occur. Of several best sets it is
/// the one whose last bucket begins earliest, then whose last but one does, and so on.
///
/// Dynamic programming after Khomenko et al. (2016). Each of its steps looks for the lowest of
/// lines that come by falling slope, at growing places, so a layer takes linear time; halving the
/// layers instead of keeping them all (Hirschberg) doubles the time and makes the memory linear.
/// Cost: O(count * classes) time, 40 bytes a class.
std::vector<std::uint32_t> optimal_boundaries(const LengthClasses& classes, std::uint32_t count);

}  // namespace batchwright
