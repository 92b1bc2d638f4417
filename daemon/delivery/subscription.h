#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/client_info.h"
#include "daemon/delivery/cursor.h"
#include "daemon/delivery/roster.h"
#include "daemon/delivery/slot_generation.h"
#include "daemon/delivery/subscription_key.h"
#include "daemon/delivery/work_queue.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// A batch that a client holds.
struct HeldBatch {
  /// Empty where the batch travelled to the client, or where it has held the batch since before the
  /// daemon's start.
  std::optional<SlotRef> slot;
  WaitingTimes::Time since{};  ///< When it was sent, or the client came back with it.
};

/// One client's claim on a feed. Owned by the feed, on the event loop.
struct Subscription {
  Subscription(ClientInfo who, std::uint32_t its_number, const Cursor& start)
      : client(std::move(who)), number(its_number), cursor(start) {}

  ClientInfo client;
  std::uint32_t number;
  Cursor cursor;  ///< Of a queue's subscription, only the epoch counts.
  wire::Mode mode = wire::Mode::replica;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t ranks_here = 0;  ///< Of the job, on the client's host; 0: unknown.
  std::uint32_t window = 1;
  Step first_step;                  ///< As asked for; checked once the epoch is planned.
  std::uint64_t epochs_left = 0;    ///< The one at hand included; 0: without end.
  std::uint32_t worst_first = 0;    ///< As asked for.
  std::vector<BatchId> rehearsals;  ///< Due before all others.
  bool resumes = false;             ///< Within its first epoch, of data that it named.
  bool accepted = false;            ///< Subscribed was sent.
  bool announces_epoch = false;     ///< EpochBegin is due.
  bool finished = false;            ///< Nothing more will be sent; leases may still be out.
  std::uint64_t delivered = 0;      ///< Batches.
  std::uint64_t delivered_bytes = 0;
  WaitingTimes waiting;                       ///< Who waited for whom, and does.
  bool asked = false;                         ///< Why nothing comes, since the last delivery.
  bool spoke = false;                         ///< Released a batch, or asked.
  bool had_none = false;                      ///< Released its last batch before it got the next.
  std::uint64_t released = 0;                 ///< Batches.
  WaitingTimes::Time moved{};                 ///< When it last released one, or got its first.
  std::map<std::uint64_t, HeldBatch> leases;  ///< What the client holds.

  /// When it got the oldest of the batches that it holds; empty: it holds none.
  std::optional<WaitingTimes::Time> holds_since() const {
    std::optional<WaitingTimes::Time> oldest;
    for (const auto& [lease, batch] : leases) {
      if (!oldest || batch.since < *oldest) oldest = batch.since;
    }
    return oldest;
  }
  bool has_credit() const { return leases.size() < window; }
  /// Nothing lies in reserve for the client. One that keeps its last batch until it has the next
  /// was never seen without any.
  bool has_no_reserve() const {
    const bool keeps_last = delivered != 0 && !had_none && window > 1;
    return asked || leases.empty() || (keeps_last && leases.size() == 1);
  }
  /// Whether it gets its batches in the plan's order.
  bool follows_plan() const { return !in_queue() && rehearsals.empty(); }
  /// Other data than those of its epoch until now are of no use to it.
  bool is_bound_to_data() const { return accepted ? !announces_epoch : resumes; }
  bool in_queue() const { return mode == wire::Mode::queue; }
  Job job() const { return mode == wire::Mode::sharded ? Job{ranks, ranks_here} : Job{}; }
  /// Who gave no token cannot come back.
  QueueOwner owner() const {
    return queue_owner(client.token != 0 ? client.token : client.session.value, number);
  }
};

/// Rank, program and process, for texts.
std::string who(const Subscription& subscription);

using Subscriptions = std::map<SubscriptionKey, Subscription>;

}  // namespace batchwright
