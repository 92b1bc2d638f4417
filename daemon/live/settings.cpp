#include "daemon/live/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace batchwright {
namespace {

/// As the planner has.
constexpr std::uint64_t kMostLanes = (1 << 24) - 1;
constexpr std::uint64_t kMostUnroll = 0x7FFFFFFF;
/// Amounts of a pool and of all steps within the bound stay far below 2^63.
constexpr std::uint64_t kMostStep = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostSequences = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostWindow = 1'000'000;
constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostStaleness = 1'000'000'000;
/// A time limit that has a daemon's clock run over is none.
constexpr std::uint64_t kMostMilliseconds = std::uint64_t{1} << 52;

using MaybeFault = std::optional<LiveFault>;

LiveFault refused(std::string_view key, const std::string& found, const std::string& allowed) {
  return {key, found, allowed};
}

MaybeFault check_range(std::string_view key, std::uint64_t found, std::uint64_t least,
                       std::uint64_t most) {
  if (found >= least && found <= most) return {};
  return refused(key, std::to_string(found), fmt::format("{} to {}", least, most));
}

MaybeFault check_ranges(const LiveSettings& s) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  struct Range {
    std::string_view key;
    std::uint64_t found, least, most;
  };
  const Range ranges[] = {
      {"step", s.step, 1, s.step_unit == StepUnit::lanes ? kMostLanes : kMostStep},
      {"world", s.world, 1, kMostSequences},
      {"window", s.window, 1, kMostWindow},
      {"quadratic_scale", s.quadratic_scale, 0, kMostStep},
      {"max_length", s.max_length, 0, kMostStep},
      {"linger", s.linger_ms.value_or(0), 0, kMostMilliseconds},
      {"group_timeout", s.group_timeout_ms, 1, kMostMilliseconds},
      {"claim_timeout", s.claim_timeout_ms, 1, kMostMilliseconds},
      {"max_staleness", s.max_staleness.value_or(0), 0, kMostStaleness},
      {"pool_sequences", s.pool_sequences, 1, kMostSequences},
      {"pool_bytes", s.pool_bytes, 1, kMost},
  };
  for (const Range& range : ranges) {
    if (auto fault = check_range(range.key, range.found, range.least, range.most)) return fault;
  }
  for (const std::uint64_t bytes : s.frame_bytes) {
    if (auto fault = check_range("frame_bytes", bytes, 0, kMostFrameBytes)) return fault;
  }
  if (s.frame_bytes.empty()) return refused("frame_bytes", "nothing", "a number for each field");
  return {};
}

/// The step against world, pool and max_length.
MaybeFault check_step(const LiveSettings& s) {
  const bool frames = s.step_unit == StepUnit::frames;
  const std::string step = std::to_string(s.step);
  if (s.step_unit == StepUnit::groups && s.groups == LiveGroups::none) {
    return refused("step.groups", step, "with live.groups = step or batch only");
  }
  const bool spread = s.step_unit == StepUnit::groups && s.groups == LiveGroups::step;
  if (!spread && s.step < s.world) {
    return refused("step", step,
                   fmt::format("live.world = {} and up, a row for each batch", s.world));
  }
  const std::uint64_t least_pool = std::max(s.world, frames ? 0 : s.step);
  if (s.pool_sequences < least_pool) {
    return refused("pool_sequences", std::to_string(s.pool_sequences),
                   fmt::format("{} and up, for a step", least_pool));
  }
  if (frames && s.pool_bytes / std::max<std::uint64_t>(s.frame_bytes[0], 1) < s.step &&
      s.frame_bytes[0] != 0) {
    return refused("pool_bytes", std::to_string(s.pool_bytes),
                   fmt::format("{} and up, for the frames of a step", s.step * s.frame_bytes[0]));
  }
  const std::uint64_t share = s.step / s.world;
  if (frames && s.max_length > share) {
    return refused("max_length", std::to_string(s.max_length),
                   fmt::format("0 to {}, a batch's share of the step", share));
  }
  if (frames && s.max_staleness && s.max_length == 0) {
    return refused("max_length", "0", "1 and up where live.max_staleness bounds a step in frames");
  }
  const std::uint64_t most_zeroed = std::max<std::uint64_t>(1, share);
  const bool in_rows = s.step_unit == StepUnit::sequences || s.step_unit == StepUnit::lanes;
  if (in_rows && s.zero_most_stale > most_zeroed) {
    return refused("zero_most_stale", std::to_string(s.zero_most_stale),
                   fmt::format("0 to {}, the rows of a batch", most_zeroed));
  }
  return {};
}

/// What lanes take, and what goes with them.
MaybeFault check_lanes(const LiveSettings& s) {
  const bool lanes = s.step_unit == StepUnit::lanes;
  if (!lanes && s.unroll != 0) {
    return refused("step.unroll", std::to_string(s.unroll), "with step.lanes only");
  }
  if (!lanes) return {};
  if (auto fault = check_range("step.unroll", s.unroll, 1, kMostUnroll)) return fault;
  if (s.step % s.world != 0) {
    return refused(
        "step", std::to_string(s.step),
        fmt::format("a multiple of live.world = {}, as each rank has as many lanes", s.world));
  }
  if (s.groups != LiveGroups::none) {
    return refused("groups", std::string(word_of(kLiveGroups, s.groups)),
                   "none with lanes, which take sequences one by one");
  }
  if (s.reuse != 1) {
    return refused("reuse", std::to_string(s.reuse),
                   "1 with lanes, which go through a sequence once");
  }
  if (s.select != LiveSelect::fifo) {
    return refused("select", "uniform", "fifo with lanes, which take sequences in their order");
  }
  if (s.cut != Cut::fixed) {
    return refused("cut", s.cut == Cut::dynamic ? "dynamic" : "another rule",
                   "fixed with lanes, which stay with their ranks");
  }
  if (s.max_staleness && s.max_length == 0) {
    return refused("max_length", "0", "1 and up where live.max_staleness bounds lanes");
  }
  return {};
}

MaybeFault check_choices(const LiveSettings& s) {
  const bool fifo = s.select == LiveSelect::fifo;
  if (s.cut != Cut::fixed && s.cut != Cut::dynamic && s.cut != Cut::quadratic) {
    return refused("cut", "another rule", "fixed, dynamic or quadratic");
  }
  if (s.cut == Cut::quadratic && s.quadratic_scale == 0) {
    return refused("quadratic_scale", "0", "1 and up with live.cut = quadratic");
  }
  if (s.stale == StalePolicy::zero && !s.max_staleness) {
    return refused("stale", "zero", "pace or drop, as live.max_staleness is not set");
  }
  if (s.stale == StalePolicy::pace && s.max_staleness && !fifo) {
    return refused("stale", "pace", "drop or zero with live.select = uniform");
  }
  if (fifo && s.reuse == 1 && s.fresh_share) {
    return refused("fresh_share", fmt::format("{}", *s.fresh_share),
                   "nothing, as live.reuse = 1 makes all of a step fresh");
  }
  if (fifo && s.reuse == 0 && !s.fresh_share) {
    return refused("fresh_share", "nothing", "0 to 1 with live.reuse = 0");
  }
  if (s.fresh_share && !(*s.fresh_share >= 0 && *s.fresh_share <= 1)) {
    return refused("fresh_share", fmt::format("{}", *s.fresh_share), "0 to 1");
  }
  return {};
}

}  // namespace

std::uint64_t LiveSettings::fresh() const {
  const double share = std::floor(fresh_share.value_or(1.0) * static_cast<double>(step) + 0.5);
  return std::max<std::uint64_t>(select == LiveSelect::fifo ? 1 : 0,
                                 static_cast<std::uint64_t>(share));
}

std::optional<LiveFault> find_fault(const LiveSettings& settings) {
  for (const auto check : {check_ranges, check_step, check_lanes, check_choices}) {
    if (auto fault = check(settings)) return fault;
  }
  return {};
}

Result<LiveSettings> check_live_settings(LiveSettings settings) {
  if (const auto fault = find_fault(settings)) {
    return Error{ErrorCode::bad_configuration, fmt::format("live.{} = {}; allowed: {}", fault->key,
                                                           fault->found, fault->allowed)};
  }
  if (settings.max_length == 0 && settings.step_unit == StepUnit::frames) {
    settings.max_length = settings.step / settings.world;
  }
  if (!settings.fresh_share) {
    settings.fresh_share =
        settings.select == LiveSelect::fifo ? 1.0 / static_cast<double>(settings.reuse) : 0.0;
  }
  return settings;
}

}  // namespace batchwright
