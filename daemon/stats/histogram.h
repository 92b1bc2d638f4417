#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace batchwright {

/// Durations, counted in fixed ranges: up to 1 us, up to 2 us, and so on, doubling up to 8.4 s,
/// and what took longer. So a quantile is known to a factor of two at worst, and adding costs
/// three relaxed additions whatever is added: no lock, no allocation.
///
/// Threads: add() from any; figures read together may be apart by what is being added.
class Histogram {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::size_t kBounds = 24;  ///< Bounds; the last range has none.

  /// A negative duration counts as none.
  void add(Duration duration) noexcept;

  std::uint64_t count() const noexcept;
  double seconds() const noexcept;  ///< The sum of all.
  /// The number of durations in range `i`: above bound i - 1, up to bound i. The last is range
  /// kBounds.
  std::uint64_t in_range(std::size_t i) const noexcept {
    return ranges_.at(i).load(std::memory_order_relaxed);
  }
  /// The upper bound of range `i` < kBounds.
  static constexpr double bound_seconds(std::size_t i) {
    return 1e-6 * static_cast<double>(std::uint64_t{1} << i);
  }

  /// The duration that a share `q` of all stays below, such as 0.99: taken from within its range as
  /// if that were filled evenly. Of the range without a bound, its lower end. Empty: nothing was
  /// added.
  std::optional<double> quantile(double q) const noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds + 1> ranges_{};
  std::atomic<std::uint64_t> nanoseconds_{0};
};

}  // namespace batchwright
