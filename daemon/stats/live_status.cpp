#include "daemon/stats/live_status.h"

#include <fmt/format.h>

#include "daemon/stats/bytes.h"

namespace batchwright {
namespace {

/// "1 push", "3 pushes".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string seconds_ago(const std::optional<LiveStatus::Seconds>& time) {
  return time ? fmt::format("{:.0f} s ago", time->count()) : "never";
}

std::string claims_text(const LiveStatus& live) {
  std::string_view what = "the first trainer to ask";
  if (live.claims_wait_for == "pool") what = "room in the pool";
  if (live.claims_wait_for == "staleness") what = "a newer version";
  return fmt::format("; {} for {}", counted(live.claims_waiting, "claim waits", "claims wait"),
                     what);
}

}  // namespace

std::string groups_text(const LiveStatus& live) {
  if (live.groups == 0) return {};
  return fmt::format("; {} {}",
                     counted(live.groups, "incomplete group lacks", "incomplete groups lack"),
                     counted(live.groups_missing, "member", "members"));
}

std::string waits_text(const LiveStatus& live) {
  std::string text;
  if (live.pushes_waiting != 0) {
    text += fmt::format("; {} for room in the pool",
                        counted(live.pushes_waiting, "push waits", "pushes wait"));
  }
  if (live.claims_waiting != 0) text += claims_text(live);
  return text;
}

std::string supply_text(const LiveStatus& live) {
  std::string text = fmt::format("the next step has {} of {} {}{}", live.step_has, live.step_needs,
                                 live.step_unit, groups_text(live));
  if (live.ended) return text + "; the feed has ended";
  if (live.producers_connected == 0) return text + "; no producer is connected";
  text += fmt::format("; {} connected, the last sequence came {}",
                      counted(live.producers_connected, "producer is", "producers are"),
                      seconds_ago(live.pushed_ago));
  if (live.claimed != 0) text += fmt::format("; {} to come", counted(live.claimed, "is", "are"));
  return text + waits_text(live);
}

std::string pool_text(const LiveStatus& live) {
  return fmt::format("the pool has {} of {} sequences, {} of {}{}",
                     live.claimed + live.waiting + live.kept, live.pool_sequences,
                     in_mib(live.waiting_bytes + live.kept_bytes), in_mib(live.pool_bytes),
                     groups_text(live));
}

std::string version_text(const LiveStatus& live) {
  if (!live.version_ago) return "trainers have announced none so far";
  return fmt::format("{} was announced {}", live.version, seconds_ago(live.version_ago));
}

}  // namespace batchwright
