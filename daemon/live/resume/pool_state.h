#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/settings.h"
#include "daemon/live/versions.h"

namespace batchwright {

/// What a pool goes on with after all of its producers and trainers have gone: facts that it told
/// when they happened. Claims, and pushes that waited, are not among them.
struct LivePoolState {
  /// One that is in the pool, or in a step that is kept.
  struct Sequence {
    LivePush push;
    std::uint64_t arrival = 0;
    std::size_t line = 0;                    ///< As LiveChange had it when it was accepted.
    bool left = false;                       ///< It is in steps alone.
    std::uint64_t given = 0, last_step = 0;  ///< As LiveChange had them last.
  };
  struct Step {
    std::uint64_t step = 0;
    std::vector<std::uint64_t> arrivals;  ///< Each once.
  };
  /// What a lane is at.
  struct Lane {
    std::uint32_t lane = 0;
    std::uint32_t next = 0;  ///< The first frame of its next row.
    std::uint64_t arrival = 0;
    friend bool operator==(const Lane&, const Lane&) = default;
  };
  VersionsState versions;
  std::vector<std::uint64_t> accepted;  ///< Sequences, by producer.
  std::uint64_t arrivals = 0;           ///< Sequences.
  std::uint64_t steps = 0;              ///< That were cut.
  std::uint64_t first_ahead = 0;        ///< The first of those that may not be trained yet.
  std::uint64_t largest_group = 1;
  bool ended = false;
  std::vector<Sequence> sequences;      ///< By arrival.
  std::vector<LiveGroupChange> groups;  ///< In the order in which they were told last.
  std::vector<Lane> lanes;              ///< Those that are busy. Their sequences are there.
  std::vector<Step> open;               ///< Steps that are kept. Their sequences are there.
  TrainerId holder = 0;                 ///< Stands for those that are due these steps.
};

/// The settings with which a pool can go on from this state: its limits are raised where it has
/// more than they allow.
LiveSettings settings_for(LiveSettings settings, const LivePoolState& state);

}  // namespace batchwright
