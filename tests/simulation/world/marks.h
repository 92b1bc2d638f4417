#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace batchwright::simulation {

/// Rare states that a sweep has to reach, or it tests less than it seems to.
enum class Mark : std::uint8_t {
  client_killed,
  client_stopped_long,
  daemon_killed,
  daemon_stopped,
  power_cut,
  line_cut,
  line_stalled,
  disk_full,
  settings_changed,
  feed_replaced,
  data_grown,
  arena_grown,
  plan_failed,
  data_away,
  last_words,
  slots_orphaned,
  session_returned,
  guest_waited,
  left_behind,
  long_wait,
  lead_held_back,
  slots_blocked,
  batch_again,
  batch_shared,
  batch_rehearsed,
  releases_joined,
  release_unknown,
  ticket_held_for_record,
  record_torn,
  journal_begun,
  queue_resumed,
  journal_lost,
  undone_returned,
  set_aside,
  done_while_held,
  kept_for_absent,
  claimed_again,
  job_restarted,
  job_resized,
  broke_early,
  evaluated_within,
  kept_to_the_window,
  reason_told,
  batch_after_retirement,
  foretold,
  foretold_by_another,
  producer_returned,
  producer_renumbered,
  claim_in_vain,
  push_in_vain,
  version_unknown,
  version_awaited,
  trainer_refused,
  live_step_short,
  live_rows_zeroed,
  live_reused,
  live_group_short,
  live_group_whole,
  live_dropped_stale,
  live_abandoned,
  live_paced,
  live_slots_grown,
  live_framed,
  live_area_full,
  live_filler,
  live_spooled,
  live_cut_again,
  live_lane_free,
  live_lane_goes_on,
  count
};

inline constexpr std::size_t kMarks = static_cast<std::size_t>(Mark::count);
/// From here on they are those of live feeds.
inline constexpr std::size_t kLiveMarks = static_cast<std::size_t>(Mark::producer_returned);

/// A sentence each, in the order of the numbers.
inline constexpr std::array<std::string_view, kMarks> kMarkTexts = {
    "a client was killed",
    "a client stood still for more than ten seconds",
    "the daemon was killed",
    "the daemon stood still",
    "the machine lost its power",
    "a remote connection was cut",
    "a remote connection stood still",
    "the disk was full",
    "settings changed while clients were there",
    "a feed was replaced",
    "the data have grown",
    "an arena grew with the data",
    "an epoch could not be planned, and was later",
    "the data went away, and came back",
    "a worker's last words came after its end",
    "a session's slots stayed held after its end",
    "a client came back before its loss was noticed",
    "a subscription waited for an absent feed",
    "a laggard was left behind",
    "a wait got long",
    "a subscription was held back by max_lead",
    "a subscription was blocked by the rule on slots",
    "a batch was assembled again",
    "a batch was shared",
    "a batch was rehearsed",
    "several releases came in one message",
    "a release of an unknown lease came",
    "a ticket waited for its record",
    "a record was torn by the daemon's death",
    "a journal was begun again for its next epoch",
    "a queue went on from its journal",
    "a journal had lost records",
    "a batch was given back undone",
    "a batch was set aside",
    "a batch was done while it was held",
    "batches were kept for a worker that was away",
    "a worker claimed what it held from a new daemon",
    "a job was restarted",
    "a job was resumed with another number of ranks",
    "a loop ended early",
    "a program evaluated within an epoch",
    "a program held as many batches as it may",
    "a client was told why it waits",
    "a client held a batch of a feed that had ended",
    "batches came as they were foretold",
    "a batch came as a daemon had foretold that was gone",
    "a producer went on behind what it had pushed before it died",
    "a push was offered again to a daemon that knew nothing of it",
    "a claim was not granted in time",
    "a push found no room in time",
    "a daemon did not know a version that another had",
    "a producer waited for a version",
    "a trainer was refused, and started again",
    "a step was cut short",
    "rows got weight 0, since they were stale",
    "a sequence was delivered again",
    "a group was cut without members that did not come",
    "a whole group was cut",
    "a sequence was dropped, since it was stale",
    "a sequence was abandoned",
    "claims were paced, and none was dropped",
    "slots grew for a live feed",
    "a producer sent a frame",
    "a producer sent a frame, since its area was full",
    "a rank repeated another's row at the end",
    "a live feed went on where its spool had it",
    "a step that no client had heard of was cut again",
    "a lane was free in a step",
    "a lane went on with its sequence",
};

/// How often each was reached.
class Marks {
 public:
  void reach(Mark mark) { ++counts_[static_cast<std::size_t>(mark)]; }
  const std::array<std::uint64_t, kMarks>& counts() const { return counts_; }
  std::array<std::uint64_t, kMarks>& counts() { return counts_; }

 private:
  std::array<std::uint64_t, kMarks> counts_{};
};

}  // namespace batchwright::simulation
