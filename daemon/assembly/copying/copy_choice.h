#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/assembly/copying/copy_ways.h"
#include "formats/formats.h"

namespace batchwright {

/// What the best way to copy depends on: the length of a run, in one of these classes.
enum class RunClass : std::uint8_t { short_runs, middle_runs, long_runs };

inline constexpr std::size_t kRunClasses = 3;

struct RunClassRow {
  std::string_view name;    ///< Name in the log and in /stats.
  std::size_t least_bytes;  ///< The shortest run of the class; shorter ones are std::memcpy()'s.
  std::size_t timed_bytes;  ///< Length of the runs by which the class is timed.
};

/// One row for each class, in the order of the enumeration.
inline constexpr std::array<RunClassRow, kRunClasses> kRunClassRows{{
    {"short", 512, 4 * 1024},
    {"middle", 16 * 1024, 64 * 1024},
    {"long", 256 * 1024, 256 * 1024},
}};

/// Bytes per second of one way, by class.
struct CopyRates {
  const CopyWay* way = nullptr;
  std::array<double, kRunClasses> bytes_per_second{};
};

/// The way to copy, by the length of a run. As it is made, std::memcpy() for all.
class CopyChoice {
 public:
  CopyChoice() : CopyChoice(plain_copy()) {}
  /// One way for all lengths.
  explicit CopyChoice(const CopyWay& way) { ways_.fill(&way); }
  /// The fastest of each class. A way has to be 3 % faster than what stands before it in the table:
  /// less may be chance.
  static CopyChoice fastest(std::span<const CopyRates> rates);

  const CopyWay& of(RunClass runs) const { return *ways_[static_cast<std::size_t>(runs)]; }
  const CopyWay& for_run(std::size_t bytes) const;

 private:
  std::array<const CopyWay*, kRunClasses> ways_;
};

/// How batches are copied, and what that was decided by.
struct CopyTable {
  CopyChoice choice;
  std::vector<CopyRates> rates;  ///< Of the ways this processor has; empty: nothing was timed.
};

/// What "auto" stands for in a configuration: what copy_timing.h measures.
inline constexpr std::string_view kAutoCopy = "auto";

/// Whether this processor has the way of that name; "auto" it has always.
/// Errors: bad_configuration, with the names that it has.
Result<void> check_copy(std::string_view name);

/// The table for a name that check_copy() lets through; "auto" is timed (time_copies()).
CopyTable make_copy_table(std::string_view name);

/// Which way copies which runs, in one line.
std::string describe_copies(const CopyTable& table);

}  // namespace batchwright
