#pragma once

#include <cstdint>
#include <vector>

#include "daemon/live/settings.h"
#include "daemon/live/unit_table.h"

namespace batchwright {

/// The units of the next step, in the order in which they were chosen.
///
/// With lanes: those that free lanes take, in the order in which they take them. Otherwise `due` go
/// first. Then come units that were never delivered until they reach `need`, then those
/// that are kept, then new ones again.
///
/// Costs O(window + step log pool) for fifo, where a window is settings.window steps, and O(pool)
/// for uniform.
std::vector<UnitId> choose_units(const LiveSettings& settings, UnitTable& table, std::uint64_t step,
                                 const std::vector<UnitId>& due, std::uint64_t need);

}  // namespace batchwright
