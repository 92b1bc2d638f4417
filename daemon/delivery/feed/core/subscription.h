#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/slots/slot_admission.h"
#include "daemon/delivery/feed/core/slots/slot_scheduler.h"
#include "daemon/delivery/feed/core/slots/upcoming_batches.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// A batch that a client holds.
struct HeldBatch {
  /// Empty where the batch travelled to the client, or where it has held the batch since before the
  /// daemon's start.
  std::optional<SlotRef> slot;
  WaitingTimes::Time since{};  ///< When it was sent, or the client came back with it.
  std::uint64_t record = 0;    ///< Its ticket is sent once this record is written.
  Step step{};                 ///< That it is of; of a queue's batch it does not count.
};

/// What a client asked for, as far as it was granted.
struct SubscriptionTerms {
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t ranks_here = 0;  ///< Of the job, on the client's host; 0: unknown.
  std::uint32_t window = 1;
  Step first_step;                ///< Checked once the epoch is planned.
  std::uint32_t worst_first = 0;  ///< Batches of its first epoch that it rehearses.
  bool anywhere = false;          ///< Of a live feed: first_step is whichever suits.
  bool resumes = false;           ///< Within its first epoch, of data that it named.
  std::uint64_t until_epoch = 0;  ///< Of a queue: it takes no batch from there on; 0: any.

  bool ends_before(Epoch epoch) const { return until_epoch != 0 && epoch.value >= until_epoch; }
};

/// Subscriptions at one place get the same batches from here on.
struct Place {
  bool in_queue = false;
  BatchId next;  ///< The next batch; for a queue, only its epoch counts.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool goes_on = false;      ///< It continues beyond its epoch.
  bool left_behind = false;  ///< Those ahead no longer wait for it.
  SubscriptionKey apart;     ///< Set for a subscription unlike any other.
  friend auto operator<=>(const Place&, const Place&) = default;
};
/// A global step of an epoch.
using Position = std::pair<Epoch, Step>;

/// What blocks a subscription from a batch, until others have released something or moved.
enum class BlockedBy : std::uint8_t {
  nothing,
  slots,  ///< The rule on slots.
  lead,   ///< It is max_lead ahead of the slowest.
};

/// Whether a subscription waits long for other clients, and when the log is to name it.
class LongWait {
 public:
  using Time = WaitingTimes::Time;

  /// A wait is looked at so often, and is long from so long on.
  static constexpr std::chrono::seconds kLook{1};
  /// A subscription that has long waits again and again is named after pauses that grow up to this.
  static constexpr std::chrono::seconds kMostPause{600};

  /// Notes whether the subscription waits for other clients, and how many batches it was given by
  /// now. How long it waits for the next one, where that is long, and is to be told: pauses between
  /// that double as long as its waits go on, and are a second again once it had none for a pause.
  std::optional<std::chrono::seconds> note(bool waits, std::uint64_t delivered, Time now) {
    if (waits && (!waits_ || delivered_ != delivered)) since_ = now;
    waits_ = waits;
    delivered_ = delivered;
    if (!waits || now - since_ < kLook) return {};
    const bool was_calm = !long_until_ || now - *long_until_ > pause_ + kLook;
    long_until_ = now;
    if (!was_calm && now < silent_until_) return {};
    pause_ = was_calm ? kLook : std::min(2 * pause_, kMostPause);
    silent_until_ = now + pause_;
    return std::chrono::duration_cast<std::chrono::seconds>(now - since_);
  }

 private:
  bool waits_ = false;
  std::uint64_t delivered_ = 0;
  Time since_{};
  std::optional<Time> long_until_;  ///< When a long wait was last seen.
  Time silent_until_{};
  std::chrono::seconds pause_ = kLook;
};

/// What SubscriptionTable has counted of a subscription. It follows from all else that is known of
/// it.
struct IndexEntry {
  std::optional<AdmissionState> admission;  ///< Empty: it is not counted yet.
  std::optional<Place> place;               ///< Empty: it stands nowhere.
  std::optional<Position> position;         ///< Without one, as in a queue, it is no laggard.
  BlockedBy blocked_by = BlockedBy::nothing;
  bool is_short = false;
};

/// One client's claim on a feed, and all that is known of it. It is changed through
/// SubscriptionTable::edit() only.
struct Subscription {
  enum class Stage : std::uint8_t {
    applied,         ///< Subscribed is due, once its first epoch is planned.
    in_epoch,        ///< It gets batches.
    between_epochs,  ///< EpochBegin is due, once the epoch that it has come to is planned.
    over,            ///< Nothing more will be sent; leases may still be out.
  };
  /// How its program goes from one batch to the next, as far as was seen.
  enum class Habit : std::uint8_t {
    looks_on,        ///< It has neither released a batch nor said that it waits.
    keeps_last,      ///< It may keep its last batch until the next one has come.
    releases_first,  ///< It released its last batch before it got the next.
  };

  Subscription(ClientInfo who, SubscriptionNumber its_number, const Cursor& start)
      : client(std::move(who)), number(its_number), cursor(start) {}

  ClientInfo client;
  SubscriptionNumber number;
  SubscriptionTerms terms;
  Cursor cursor;  ///< Of a queue's subscription, only the epoch counts.
  Stage stage = Stage::applied;
  Habit habit = Habit::looks_on;
  std::uint64_t epochs_left = 0;    ///< The one at hand included; 0: without end.
  std::vector<BatchId> rehearsals;  ///< Due before all others.
  std::uint64_t delivered = 0;      ///< Batches.
  std::uint64_t delivered_bytes = 0;
  std::uint64_t released = 0;               ///< Batches.
  WaitingTimes waiting;                     ///< Which side waited for the other, and does.
  bool asked = false;                       ///< It said that it waits, and nothing came since.
  WaitingTimes::Time moved{};               ///< When it last released one, or got its first.
  std::map<LeaseNumber, HeldBatch> leases;  ///< What the client holds.
  BlockedBy blocked_by = BlockedBy::nothing;
  StragglerState straggler;
  LongWait long_wait;
  IndexEntry index;  ///< For SubscriptionTable alone.

  SubscriptionKey key() const { return {client.session, number}; }
  bool is_over() const { return stage == Stage::over; }
  /// Subscribed was sent, and batches are to come.
  bool is_served() const { return stage == Stage::in_epoch || stage == Stage::between_epochs; }
  bool looks_on() const { return habit == Habit::looks_on; }
  bool releases_first() const { return habit == Habit::releases_first; }
  /// The client said something that only a program says which takes batches.
  void speak() { habit = std::max(habit, Habit::keeps_last); }
  /// It said that it released batches, and holds none now.
  void note_empty_handed() {
    if (leases.empty() && !looks_on()) habit = Habit::releases_first;
  }
  void finish() { stage = Stage::over; }
  /// When it got the oldest of the batches that it holds; empty: it holds none.
  std::optional<WaitingTimes::Time> holds_since() const {
    std::optional<WaitingTimes::Time> oldest;
    for (const auto& [lease, batch] : leases) {
      if (!oldest || batch.since < *oldest) oldest = batch.since;
    }
    return oldest;
  }
  /// Of one that is not in a queue: the first step of its epoch that it has not released.
  Step oldest_step() const {
    Step oldest = cursor.step();
    for (const auto& [lease, batch] : leases) oldest = std::min(oldest, batch.step);
    return oldest;
  }
  bool has_credit() const { return leases.size() < terms.window; }
  /// Whether its program waits, by what the client says. One without the ability to say so at any
  /// time is taken for waiting when it holds nothing, too.
  bool says_it_waits() const {
    return asked || (leases.empty() && !client.abilities.has(Ability::waits));
  }
  /// Whether a batch that is ready is to reach it at once: its program waits, or it holds no more
  /// than half of its window.
  bool is_short() const {
    const bool takes_none = looks_on() && !leases.empty();
    return is_served() && has_credit() && !takes_none && blocked_by == BlockedBy::nothing &&
           (says_it_waits() || 2 * leases.size() <= terms.window);
  }
  /// Whether it gets its batches in the plan's order.
  bool follows_plan() const { return !in_queue() && rehearsals.empty(); }
  /// Other data than those of its epoch until now are of no use to it.
  bool is_bound_to_data() const {
    return stage == Stage::applied ? terms.resumes : stage == Stage::in_epoch;
  }
  bool in_queue() const { return terms.mode == wire::Mode::queue; }
  Job job() const {
    return terms.mode == wire::Mode::sharded ? Job{terms.ranks, terms.ranks_here} : Job{};
  }
  /// A client that gave no token cannot come back.
  QueueOwner owner() const {
    return queue_owner(client.token != 0 ? client.token : client.session.value, number);
  }
};

/// Rank, program and process, for texts.
std::string who(const Subscription& subscription);

using Subscriptions = std::map<SubscriptionKey, Subscription>;

}  // namespace batchwright
