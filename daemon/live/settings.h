#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/planning/planning.h"
#include "formats/base/base.h"

namespace batchwright {

/// What the budget of a step counts.
enum class StepUnit : std::uint8_t {
  sequences,
  groups,
  frames,
  lanes  ///< Rows of truncated unrolling, which stay with their ranks.
};
/// What holds the whole of a group.
enum class LiveGroups : std::uint8_t { none, step, batch };
/// What becomes of a sequence that is too stale.
enum class StalePolicy : std::uint8_t {
  pace,  ///< As drop; but a step also waits for what is due and in flight.
  drop,
  zero  ///< It stays, with weight 0.
};
/// What becomes of the members of a group that is closed before it is complete.
enum class LateGroups : std::uint8_t { cut, abandon };
enum class LiveSelect : std::uint8_t { fifo, uniform };

/// How the values are spelled wherever people read or write them.
template <class T>
using LiveWord = std::pair<std::string_view, T>;
inline constexpr LiveWord<StepUnit> kStepUnits[] = {{"sequences", StepUnit::sequences},
                                                    {"groups", StepUnit::groups},
                                                    {"frames", StepUnit::frames},
                                                    {"lanes", StepUnit::lanes}};
inline constexpr LiveWord<LiveGroups> kLiveGroups[] = {
    {"none", LiveGroups::none}, {"step", LiveGroups::step}, {"batch", LiveGroups::batch}};
inline constexpr LiveWord<StalePolicy> kStalePolicies[] = {
    {"pace", StalePolicy::pace}, {"drop", StalePolicy::drop}, {"zero", StalePolicy::zero}};
inline constexpr LiveWord<LateGroups> kLateGroups[] = {{"cut", LateGroups::cut},
                                                       {"abandon", LateGroups::abandon}};
inline constexpr LiveWord<LiveSelect> kLiveSelects[] = {{"fifo", LiveSelect::fifo},
                                                        {"uniform", LiveSelect::uniform}};
/// The word for a value, of a table that has each.
template <class T, std::size_t N>
constexpr std::string_view word_of(const LiveWord<T> (&words)[N], T value) {
  return std::find_if(std::begin(words), std::end(words),
                      [value](const LiveWord<T>& each) { return each.second == value; })
      ->first;
}

/// Those settings of a live feed that may change while it serves: they bound what comes next, and
/// no sequence or step is of another kind by them.
struct LiveLimits {
  std::uint64_t window = 4;                ///< Steps' worth within which lengths are matched.
  std::uint64_t max_length = 0;            ///< Frames; 0: a batch's share of frames, or no limit.
  std::optional<std::uint64_t> linger_ms;  ///< Of a loop that waits; empty: full steps only.
  std::uint64_t group_timeout_ms = 600'000;
  LateGroups late_groups = LateGroups::cut;
  std::optional<std::uint64_t> max_staleness;
  StalePolicy stale = StalePolicy::pace;
  std::uint64_t claim_timeout_ms = 600'000;
  std::uint64_t zero_most_stale = 0;  ///< Rows of each batch.
  std::uint64_t reuse = 1;            ///< Most deliveries of a sequence; 0: no limit.
  std::optional<double> fresh_share;  ///< Of a step; empty: 1 / reuse (fifo), 0 (uniform).
  std::uint64_t pool_sequences = 1024;

  friend bool operator==(const LiveLimits&, const LiveLimits&) = default;
};

/// The settings of one live feed. Names and ranges as in `[feed.live]`, whose keys the errors of
/// check_live_settings() name.
struct LiveSettings : LiveLimits {
  StepUnit step_unit = StepUnit::sequences;
  std::uint64_t step = 16;            ///< The budget of a step, in its unit.
  std::uint64_t unroll = 0;           ///< Frames of a lane's row; 0 without lanes.
  std::uint64_t world = 1;            ///< Batches of a step.
  Cut cut = Cut::fixed;               ///< fixed, dynamic or quadratic.
  std::uint64_t quadratic_scale = 0;  ///< a in frames + frames^2 / a, of quadratic.
  LiveGroups groups = LiveGroups::none;
  LiveSelect select = LiveSelect::fifo;
  std::uint64_t pool_bytes = std::uint64_t{1} << 40;
  std::vector<std::uint64_t> frame_bytes{
      4};  ///< Bytes of a frame of each field, the primary first.
  std::uint64_t seed = 0;

  /// Whether staleness limits what may be claimed, and decides what a step has to take.
  bool bounded() const { return max_staleness && select == LiveSelect::fifo; }
  /// Whether steps wait for what is due and in flight.
  bool paced() const { return bounded() && stale == StalePolicy::pace; }
  /// Whether something of this staleness is beyond the bound.
  bool too_stale(std::uint64_t staleness) const {
    return max_staleness && staleness > *max_staleness;
  }
  /// The part of a step's budget that is taken of what was never delivered. For checked settings.
  std::uint64_t fresh() const;
  /// What a sequence that is still to come counts in a step: frames, or one.
  std::uint64_t longest() const { return step_unit == StepUnit::frames ? max_length : 1; }
  /// Sequences that a step may need where its groups have so many members.
  std::uint64_t step_of_groups(std::uint64_t members) const {
    if (step_unit == StepUnit::groups) return step * members;
    return groups == LiveGroups::batch ? world * members : members;
  }
};

/// What is refused of some settings, and why.
struct LiveFault {
  std::string_view
      key;  ///< A member of LiveSettings, as `[feed.live]` names it, "step.groups", "step.unroll".
  std::string found;
  std::string allowed;  ///< Names other keys as "live.KEY".
};

/// The first fault; empty: there is none.
std::optional<LiveFault> find_fault(const LiveSettings& settings);

/// The settings with what follows from others filled in: max_length, fresh_share. The pool takes
/// no others.
/// Errors: bad_configuration, which tells find_fault().
Result<LiveSettings> check_live_settings(LiveSettings settings);

}  // namespace batchwright
