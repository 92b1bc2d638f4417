#pragma once

#include <cstdint>
#include <string>

#include "daemon/live/live.h"

namespace batchwright::test {

/// What a long run is to be.
struct LongRun {
  std::uint64_t seed = 1;
  std::uint64_t sequences = 100'000;  ///< That trainers are to get.
  /// Each step makes one version, one loop alone trains, all is claimed and nothing is restored, so
  /// that `pace` drops nothing. Otherwise producers push any version that was announced, versions
  /// jump, trainers restore, and all of them pause and come back.
  bool is_paced = false;
  /// Of a run that is paced.
  StepUnit unit = StepUnit::sequences;
  std::uint32_t prefetch = 0;
};

/// What trainers counted of what their loops got.
struct LongRunFigures {
  std::uint64_t pools = 0;   ///< Each with settings of its own.
  std::uint64_t events = 0;  ///< Of the pools.
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t bounded = 0;    ///< Rows that have a bound.
  std::uint64_t at_bound = 0;   ///< Rows exactly as stale as they may be.
  std::uint64_t zeroed = 0;     ///< Rows that are too stale, and have weight 0.
  std::uint64_t old_lines = 0;  ///< Rows of a line of training that a restore has ended.
  std::uint64_t restores = 0;
  std::uint64_t replays = 0;  ///< Restores after which kept steps were taken again.
  std::uint64_t jumps = 0;    ///< Announcements of more than the next version.
  std::uint64_t pauses = 0;
  std::uint64_t dropped = 0;  ///< Sequences that were accepted, and grew too stale.
  std::uint64_t pushed = 0;
  std::uint64_t pushed_frames = 0;
  std::uint64_t frames = 0;  ///< Of the rows.
  std::string fault;         ///< What did not hold; empty: all did.
};

/// Drives pools with producers, loops and time of its own. The same seed gives the same run.
LongRunFigures run_long(const LongRun& run);

}  // namespace batchwright::test
