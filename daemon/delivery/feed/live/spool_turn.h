#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/live/live.h"
#include "formats/formats.h"

namespace batchwright {

/// A sequence that a producer pushed, as a spool has it.
struct SpooledSequence {
  std::shared_ptr<const PushedSequence> sequence;
  ProducerId producer = 0;
  std::size_t line = 0;  ///< As in LiveChange.
};

/// A row of a step.
struct SpooledRow {
  std::uint64_t arrival = 0;
  float weight = 0;
  bool zeroed = false;
  bool filler = false;
  bool leaves = false;  ///< The sequence left the pool with this step.
  std::uint32_t start = 0;
  std::uint32_t frames = 0;  ///< 0: a free lane's, which has no sequence.
  bool reset = true, last = true;
};

struct SpooledStep {
  std::uint64_t step = 0;
  std::uint64_t version = 0;
  std::vector<std::vector<SpooledRow>> batches;
};

/// A sequence that stays in the pool after a delivery, or leaves it later than that.
struct SpooledMark {
  std::uint64_t arrival = 0;
  std::uint64_t given = 0, last_step = 0;
  bool left = false;
};

/// What a feed knows of a producer, by its number.
struct SpooledProducer {
  ProducerId id = 0;
  std::shared_ptr<const std::string> name;
  std::uint64_t next = 0;
  std::vector<std::uint64_t> totals;  ///< By outcome.
  std::uint64_t refused_full = 0, duplicates = 0;
  std::uint64_t first = 0;                  ///< Number of outcomes[0].
  std::vector<std::uint8_t> outcomes = {};  ///< As far as they changed, in whole chunks;
                                            ///< all of them where a spool is opened.
  std::uint64_t forgotten_before = 0;       ///< Numbers before it have no outcome any more.
  bool is_settled = false;  ///< Of one that was read: some outcomes are others than the spool has.
};

/// Numbers that all the rest goes by.
struct SpoolCounts {
  std::uint64_t steps = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t first_ahead = 0;
  std::uint64_t kept_from = 0;
  std::uint64_t largest_group = 1;
  bool ended = false;
  VersionsState versions;
  std::vector<LivePoolState::Lane> lanes = {};  ///< Those that are busy.
  std::optional<std::uint64_t> mark = {};       ///< The first step that a trainer wants kept.
};

/// What a live feed has its spool note of a turn: all of it, or nothing.
struct SpoolTurn {
  SpoolCounts counts;
  std::uint64_t gone_steps_from = 0;  ///< From this step to counts.kept_from they are kept no more.
  std::vector<SpooledSequence> accepted;
  std::vector<SpooledStep> steps;
  std::vector<SpooledMark> marks;
  std::vector<LiveGroupChange> groups;
  std::vector<SpooledProducer> producers;
  std::vector<std::uint64_t> freed;  ///< Arrivals.
};

/// What a spool had when it was opened.
struct SpooledFeed {
  std::uint64_t incarnation = 0;
  SpoolCounts counts;
  std::vector<SpooledProducer> producers;  ///< By id, with all outcomes that are known.
  LivePoolState pool;
  std::vector<std::shared_ptr<const PushedSequence>> sequences;  ///< Those of `pool`, in its order.
  std::vector<SpooledStep> steps;                                ///< That are kept.
};

}  // namespace batchwright
