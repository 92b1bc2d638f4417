#pragma once

#include <chrono>
#include <cstdint>

#include "tests/simulation/run.h"

namespace batchwright::simulation {

/// A worker that lost the daemon, and neither stands still nor has a slow way to it, is back
/// before.
inline constexpr std::chrono::seconds kLongGrace{5};

/// What is drawn first, and all else depends on: which programs take part.
struct Run::Cast {
  std::uint32_t ranks = 0;  ///< Of a job; 0: there is none.
  std::uint32_t remote_ranks = 0;
  std::uint32_t trainers = 0;
  std::uint32_t workers = 0;
  std::uint32_t observers = 0;
  std::uint32_t world = 1;
  std::uint32_t steps = 1;  ///< Of an epoch.
  std::uint32_t epochs = 1;
  bool holds_many = false;  ///< Trainers may wait for a batch while they hold several others.
  bool grows = false;
  bool leads = false;   ///< max_lead is set, so no program may look on.
  bool is_fair = true;  ///< No faults at all.
  bool live = false;    ///< The feed has producers, as follows.
  std::uint32_t producers = 0;
  std::uint32_t together = 1;   ///< Sequences of a claim, or of a group.
  std::uint64_t sequences = 0;  ///< About so many are made in all.
  bool claims = false;          ///< Producers do; of `mixes`, some.
  bool mixes = false;
  bool has_quotas = false;  ///< Producers end by themselves; else trainers do.
};

}  // namespace batchwright::simulation
