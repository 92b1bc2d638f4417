#pragma once

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/core/slots/slot_scheduler.h"
#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/live_requests.h"
#include "daemon/delivery/feed/plans/planner.h"
#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

// What a FeedCore is told, and what it asks for: both are values. And what it was told last.

namespace batchwright {

/// How a session ends.
struct SessionEnd {
  bool may_return = false;  ///< A queue keeps what the client took, for a while.
  bool lives = false;       ///< Its process may still read the slots that it holds.
  bool died = false;  ///< It ended without a word: it may have begun the first batch it holds.
};

/// What a feed tells of its data: it changes as these grow.
struct DataFacts {
  std::uint64_t sequences = 0;
  Fingerprint fingerprint;                 ///< Of the first epoch.
  std::string terms;                       ///< terms_text().
  std::optional<Fingerprint> first_draws;  ///< fingerprint_of_first_draws().
};

enum class FeedTimer : std::uint8_t {
  returns,     ///< Ends what a queue keeps for clients that are away.
  stragglers,  ///< Ends a wait for stragglers.
  long_waits,  ///< Looks for waits that get long.
  plans,       ///< An epoch is tried again, or a plan's turn ends.
  live,        ///< A time limit of a live feed.
  data,        ///< Of the driver: a look at the dataset's files takes long.
  blockage,    ///< Of the driver: looks whether a file system answers.
};
inline constexpr std::size_t kFeedTimers = 7;

// Events.

/// The feed is to begin: nothing is assembled before.
struct Started {};
/// A request that FeedCore::check_subscribe() accepts.
struct SubscribeRequested {
  ClientInfo client;
  wire::SubscribeT request;
};
struct Unsubscribed {
  SubscriptionKey key;
};
struct Released {
  SubscriptionKey key;
  std::vector<LeaseNumber> leases;
  bool undone = false;
  bool keeps = false;
  std::chrono::microseconds waited{0};
};
/// The client's program waits, and holds so many batches.
struct ProgramWaits {
  SubscriptionKey key;
  std::uint32_t holds = 0;
};
/// The same, and it asks for the reason. `blocked`: by a file system, in words.
struct ReasonAsked {
  SubscriptionKey key;
  std::uint32_t holds = 0;
  std::optional<std::string> blocked;
};
/// The client asks for the next batches, so many at most.
struct UpcomingAsked {
  SubscriptionKey key;
  std::uint32_t question = 0;
  std::uint32_t count = 0;
};
/// A client of a live feed asks for something.
struct LiveAsked {
  ClientInfo client;
  LiveRequest asked;
};
/// The session's subscriptions and producers go.
struct SessionEnded {
  SessionId session;
  SessionEnd how;
};
/// The process of a session is dead, and the session has not ended: its last words may say that
/// leases are done.
struct ProcessExited {
  SessionId session;
};
/// The process of a session that ended lets go of the arenas.
struct ArenaReleased {
  SessionId session;
};
struct PlanReady {
  PlannedEpoch planned;
  std::optional<DataFacts> facts;         ///< Not empty: the data have grown.
  std::shared_ptr<SlotGeneration> slots;  ///< Not null: larger slots for them.
  std::string why_not_newer;              ///< Why sequences that were appended are left out.
};
struct PlanFailed {
  Epoch epoch;
  Error error;
};
/// The plan that came is of other data than those that the epoch was decided to be of.
struct PlanOutdated {
  Epoch epoch;
};
/// `data`: as in its Assemble. `brought_in_bytes`: from the disk, for all batches until now.
struct BatchReady {
  SlotScheduler::Assignment assignment;
  std::uint64_t data = 0;
  std::uint64_t brought_in_bytes = 0;
  AssembledBatch batch;
};
struct BatchFailed {
  SlotScheduler::Assignment assignment;
  std::uint64_t data = 0;
  std::uint64_t brought_in_bytes = 0;
  Error error;
};
/// The bytes of a SendBatch are needed no more, whether they arrived or not.
struct BatchSent {
  SlotRef slot;
};
struct SlotPoisoned {
  SlotRef slot;
};
/// How far the feed's record has the steps.
struct StepsWritten : Written {};
/// Larger slots, as GrowSlots asks for.
struct SlotsGrown {
  std::shared_ptr<SlotGeneration> slots;
};
struct SlotsNotGrown {
  Error error;
};
struct SettingsChanged {
  FeedAdjustments wanted;
  std::optional<LiveLimits> limits{};  ///< Of a live feed.
};
/// The dataset's files are no longer those that the feed reads.
struct DataOverwritten {
  Error error;
};
/// The feed has failed, and its clients are to be told: nothing takes its place.
struct NotReplaced {};
struct Retired {
  Error error;
};
struct TimerDue {
  FeedTimer timer;
};

/// Everything that can change what a feed does next.
using FeedEvent =
    std::variant<Started, SubscribeRequested, Unsubscribed, Released, ProgramWaits, ReasonAsked,
                 SessionEnded, ProcessExited, ArenaReleased, PlanReady, PlanFailed, PlanOutdated,
                 BatchReady, BatchFailed, BatchSent, SlotPoisoned, Written, SettingsChanged,
                 DataOverwritten, NotReplaced, Retired, TimerDue, UpcomingAsked, LiveAsked,
                 SlotsGrown, SlotsNotGrown, StepsWritten>;

// Actions.

/// Sends a message. It may find the session gone; then nothing happens.
struct Send {
  SessionId session;
  flatbuffers::DetachedBuffer message;
  bool is_ticket = false;
};
/// Sends a ticket with the batch behind it; BatchSent answers.
struct SendBatch {
  SessionId session;
  flatbuffers::DetachedBuffer ticket;
  SlotRef slot;
  Extent extent;  ///< Of the arena.
};
/// BatchReady or BatchFailed answers.
struct Assemble {
  SlotScheduler::Assignment assignment;
  std::uint64_t data = 0;  ///< The content that the epoch is planned of.
  std::shared_ptr<const EpochSource> source;
  std::shared_ptr<const BatchSource> batches;
  Urgency urgency = Urgency::ahead;
};
/// Brings the pages of a batch into memory.
struct ReadAhead {
  std::shared_ptr<const EpochSource> source;
  BatchIndex index;
};
/// PlanReady, PlanFailed or PlanOutdated answers. `data`: the content that is decided for it.
struct MakePlan {
  Epoch epoch;
  std::optional<std::uint64_t> data;
};
/// Has these written on the thread of the files, in their order, after those before; Written
/// answers.
struct WriteRecords {
  std::vector<Record> records;
};
/// Has steps written to the feed's record, on a thread of their own, in the order in which they are
/// asked for; StepsWritten answers. The last has CloseFiles.
struct RecordSteps {
  std::vector<Record> steps;
};
/// Makes another arena, of slots of so many bytes or more; SlotsGrown or SlotsNotGrown answers.
struct GrowSlots {
  std::size_t slot_bytes = 0;
};
struct SetTimer {
  FeedTimer timer;
  std::chrono::steady_clock::time_point when;
};
/// Overwrites a slot's bytes, for debugging; SlotPoisoned answers.
struct Poison {
  SlotRef slot;
};
/// A look whether the dataset's files are still those that the feed reads.
struct LookAtData {};
struct Log {
  std::function<void(EventLog&)> note;
};
/// Data of plans that are needed no longer: their end may wait for a file system.
struct FreePlans {
  std::vector<PlannedEpoch> plans;
};
/// The feed has failed; NotReplaced answers, unless another takes its place.
struct Failed {
  ErrorCode code;
};

/// Everything a feed can ask of the outside.
using FeedAction =
    std::variant<Send, SendBatch, Assemble, ReadAhead, MakePlan, WriteRecords, GrowSlots, SetTimer,
                 Poison, LookAtData, Log, FreePlans, Failed, RecordSteps>;

std::string_view name_of(const FeedEvent& event);

/// The last events of a feed, as small values, for the log of a broken invariant.
/// Threads: one at a time.
class EventRing {
 public:
  static constexpr std::size_t kEvents = 256;

  void add(const FeedEvent& event, WaitingTimes::Time now);
  /// The oldest first, one a line: microseconds before the last one, what it was, and of what.
  std::string describe() const;

 private:
  struct Entry {
    WaitingTimes::Time when;
    std::uint8_t kind = 0;     ///< Its place in FeedEvent.
    std::uint64_t first = 0;   ///< A session, or an epoch.
    std::uint64_t second = 0;  ///< A subscription's number, or a batch.
  };
  std::array<Entry, kEvents> entries_{};
  std::size_t added_ = 0;
};

}  // namespace batchwright
