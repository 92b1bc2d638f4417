#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/live/settings.h"

namespace batchwright {

/// A producer or trainer, by a small number that the driver gave its name: 0, 1, 2 and so on, since
/// tables have a place for each.
using ProducerId = std::uint32_t;
using TrainerId = std::uint32_t;

/// Places in the pool's own tables, which are used again once they are free.
using SequenceId = std::uint32_t;
using UnitId = std::uint32_t;
inline constexpr std::uint32_t kNoId = 0xFFFFFFFF;

/// A producer offers a sequence. The driver has the bytes, and keeps them until the sequence has
/// left the pool and its steps are assembled.
struct LivePush {
  ProducerId producer = 0;
  std::uint64_t number = 0;
  std::uint32_t length = 0;  ///< Frames of the primary field, up to 2^31 - 1.
  std::uint64_t bytes = 0;   ///< Of all fields.
  std::uint64_t version = 0;
  std::uint64_t version_newest = 0;
  std::optional<std::uint64_t> group;
  std::uint64_t group_size = 0;
  double weight = 1.0;
  std::optional<std::uint64_t> timeout_ms;  ///< Empty: it waits without a limit.
};

/// A producer asks whether so many sequences more may be begun.
struct LiveClaim {
  ProducerId producer = 0;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> timeout_ms;
};

/// So many members of a group will not come.
struct AbandonGroup {
  ProducerId producer = 0;
  std::optional<std::uint64_t> group;  ///< Empty: it only ends claims.
  std::uint64_t count = 0;             ///< 0: all that are missing.
};

/// A sequence is not to be used if it still waits.
struct AbandonNumber {
  ProducerId producer = 0;
  std::uint64_t number = 0;
};

/// A producer has closed, or is dead. Its accepted sequences stay.
struct ProducerGone {
  ProducerId producer = 0;
};

/// A trainer has made a version, up to 2^62.
struct LiveAdvance {
  std::uint64_t version = 0;
  bool restored = false;
  bool replays = false;  ///< It takes kept steps again.
};

/// A trainer's loop waits for a step, or its client has room for one.
struct LiveTake {
  TrainerId trainer = 0;
  std::optional<std::uint64_t> step;  ///< One below the trainer's next is on its way already.
  bool prefetch = false;              ///< Its client has room; the loop does not wait.
};

struct LiveRelease {
  TrainerId trainer = 0;
  std::uint64_t step = 0;
};

/// A trainer has unsubscribed, or its session is over: it is due nothing more, as if it had
/// released all. If it takes again it joins as a new one.
struct TrainerGone {
  TrainerId trainer = 0;
};

/// The settings have other limits from now on, as check_live_settings() has them.
struct LimitsChanged {
  LiveLimits limits;
};

struct LiveEnd {};     ///< No more will come.
struct TimePassed {};  ///< Nothing but that.

/// Everything that can change what a live feed does next.
using LiveEvent =
    std::variant<LivePush, LiveClaim, AbandonGroup, AbandonNumber, ProducerGone, LiveAdvance,
                 LiveTake, LiveRelease, TrainerGone, LiveEnd, TimePassed, LimitsChanged>;

/// The answer to a push that was not accepted at once, to a claim or to a take.
struct LiveAnswer {
  enum class Kind : std::uint8_t {
    accepted,
    duplicate,
    refused,
    granted,  ///< `value` is the version.
    timed_out,
    ended,
    step,  ///< `value` is the step.
    end    ///< A trainer's, when no step is left.
  };
  Kind kind = Kind::accepted;
  std::uint64_t event = 0;  ///< What LivePool::on() returned for the push, the claim or the take.
  std::uint64_t at_ms = 0;
  std::uint64_t value = 0;
  std::string why;  ///< Of refused, for people; of timed_out: pool, staleness or trainer.
};

/// What made a step be cut when it was.
enum class CutReason : std::uint8_t { full, end, pool, linger, starved };

/// A row of a batch: a sequence, or the part of it that a lane has come to. A batch of lanes has a
/// row for each of its rank's, in their order; a free one's row has no frames, and no sequence.
struct LiveRow {
  ProducerId producer = 0;
  std::uint64_t number = 0;
  std::uint64_t arrival = 0;  ///< How many sequences were accepted before it.
  double weight = 0;          ///< 0 for zeroed rows and filler.
  std::uint64_t staleness = 0;
  bool zeroed = false;
  bool filler = false;       ///< It repeats a row, so that each rank has one when a feed ends.
  std::uint32_t start = 0;   ///< The first of its frames.
  std::uint32_t frames = 0;  ///< 0: a free lane's.
  bool reset = true;         ///< It begins its sequence.
  bool last = true;          ///< It ends it.
};

/// A step that was cut. It never changes afterwards.
struct LiveStep {
  std::uint64_t step = 0;
  std::uint64_t at_ms = 0;
  std::uint64_t after = 0;  ///< Events that were handled before.
  std::uint64_t version = 0;
  CutReason why = CutReason::full;
  std::vector<std::vector<LiveRow>> batches;  ///< One a rank.
};

enum class SequenceState : std::uint8_t { waiting, delivered, done, dropped_stale, abandoned };

/// A sequence's state is another one. The first is `waiting`: it was accepted.
struct LiveChange {
  ProducerId producer = 0;
  std::uint64_t number = 0;
  std::uint64_t arrival = 0;
  SequenceState state = SequenceState::waiting;
  bool left = false;     ///< It is out of the pool: no later step has it.
  std::string_view why;  ///< Of dropped_stale and abandoned: stale, late, asked or incomplete.
  std::uint64_t at_ms = 0;
  std::size_t line = 0;         ///< Of training, that its version is of.
  std::uint64_t given = 0;      ///< While it is in the pool: its deliveries,
  std::uint64_t last_step = 0;  ///< and the step of the last.
};

/// What is known of a group is something else.
struct LiveGroupChange {
  std::uint64_t group = 0;
  std::uint64_t gone = 0;               ///< So many of its members will not come.
  std::optional<SequenceState> closed;  ///< What becomes of members that come. Empty: they join.
};

/// What follows from events, each list in order. A caller takes it and clears it.
struct LiveResults {
  std::vector<LiveAnswer> answers;
  std::vector<LiveStep> steps;
  std::vector<LiveChange> changes;
  std::vector<LiveGroupChange> groups;
};

}  // namespace batchwright
