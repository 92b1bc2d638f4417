#pragma once

#include <cstddef>
#include <filesystem>

namespace batchwright {

/// Share of the last 10 s for which some thread of this process's control group, or otherwise of
/// the machine, waited for memory (PSI, the kernel's Documentation/accounting/psi.rst). 0 where the
/// kernel does not tell it. `root` is "/", or a copy of /proc and /sys.
double memory_pressure(const std::filesystem::path& root = "/");

inline constexpr double kPressureFelt = 0.05;     ///< Above it readahead makes room,
inline constexpr double kPressureHighest = 0.40;  ///< and from here on it takes none.

/// What of `bytes` readahead may take under such a pressure: all below kPressureFelt, nothing from
/// kPressureHighest on, and in between a share that falls in proportion.
std::size_t room_under_pressure(std::size_t bytes, double pressure);

}  // namespace batchwright
