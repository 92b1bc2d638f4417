#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The plan of several servers, in their order: each of its three parts is the FNV-1a hash over
/// the number of servers and their values, 8 little-endian bytes each.
Fingerprint combined(const std::vector<Fingerprint>& plans);

/// The steps of all servers together.
std::uint64_t total_steps(const std::vector<std::uint64_t>& steps);

/// The places of servers after a number of turns.
struct RoundRobin {
  std::vector<std::uint64_t> done;  ///< Steps of each.
  std::size_t next = 0;             ///< The server whose turn it is.
};
/// After so many merged steps of servers that have `steps` each; empty when they have fewer.
std::optional<RoundRobin> round_robin_after(std::uint64_t merged_steps,
                                            const std::vector<std::uint64_t>& steps);

}  // namespace batchwright
