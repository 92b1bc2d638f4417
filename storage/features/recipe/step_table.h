#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace batchwright {

/// Several functions of a length that never fall as it grows, and rise by one now and then, as
/// frames do with samples: kept in a cell for each kBlock lengths, which is small enough for a
/// core's cache where a table of all lengths is not.
/// Immutable. Threads: any.
class StepTable {
 public:
  static constexpr std::uint64_t kBlock = 64;

  StepTable() = default;
  /// Of lengths 0 .. longest and functions 0 .. functions - 1, which `value` is asked for: some six
  /// times a cell.
  StepTable(std::uint64_t longest, std::size_t functions,
            const std::function<std::uint64_t(std::uint64_t length, std::size_t function)>& value);

  /// Cells that the constructor makes.
  static std::size_t cells(std::uint64_t longest, std::size_t functions) {
    return static_cast<std::size_t>(longest / kBlock + 1) * functions;
  }

  /// A function's value. Empty where it rises by more than one within a block, is 2^25 or more, or
  /// the length is longer than `longest`.
  std::optional<std::uint32_t> find(std::uint64_t length, std::size_t function) const {
    const std::uint64_t at = length / kBlock * functions_ + function;
    if (at >= cells_.size() || cells_[at] == kUnknown) return std::nullopt;
    const std::uint32_t step = cells_[at] & kStepMask;
    return (cells_[at] >> kStepBits) + (length % kBlock >= step ? 1 : 0);
  }

 private:
  /// The value at a block's begin, and at which of its lengths it rises: 1 to kBlock, which is the
  /// next block's begin.
  static constexpr std::uint32_t kStepBits = 7;
  static constexpr std::uint32_t kStepMask = (1U << kStepBits) - 1;
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

  std::size_t functions_ = 0;
  std::vector<std::uint32_t> cells_;
};

}  // namespace batchwright
