#include "daemon/stats/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/stats/bytes.h"

namespace batchwright {
namespace {

/// Waits of clients below this share of their time are what handing over takes.
constexpr double kNoticed = 0.05;
/// The share from which on a thread has little else to do.
constexpr double kMost = 0.5;
/// One readahead thread looks up rows: it limits a feed only when nearly all its time is taken.
constexpr double kSaturated = 0.9;
/// Seconds in which a batch is made, whatever its size, where nothing is wrong.
constexpr double kLong = 5.0;

double share(double part, double whole) {
  return whole > 0.0 ? std::clamp(part / whole, 0.0, 1.0) : 0.0;
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100.0 * part); }

/// The window, as shares of its time.
struct Shares {
  double clients_waited;
  double daemon_waited;
  double slot_waits;       ///< The part of the clients' waits that was for slots.
  double threads_busy;     ///< Busy share of all assembly threads' time, for any feed.
  double threads_storage;  ///< The part of it spent waiting for pages.
  double own_busy;         ///< Time that this feed's batches took to assemble, of the window.
  double own_storage;      ///< The part of this feed's time spent waiting for pages.
  double own_processor;    ///< The part of it in which no processor was free.
  double own_making;       ///< The part of it spent making rows.
  double readahead_busy;
  double handing_delayed;  ///< Of the window, by threads that found no processor free.
  // Of a live feed.
  double step_waits;     ///< The part of the clients' waits that was for steps.
  double room_waits;     ///< Of the time of its producers: for room in the pool,
  double version_waits;  ///< or for a newer version.
};

Shares shares_of(const FeedSample& sum, double span, unsigned assembly_threads) {
  return {share(sum.clients_waited_seconds, sum.subscribed_seconds),
          share(sum.daemon_waited_seconds, sum.subscribed_seconds),
          share(sum.slot_waited_seconds, sum.clients_waited_seconds),
          share(sum.all.assemble_seconds, span * assembly_threads),
          share(sum.all.storage_wait_seconds, sum.all.assemble_seconds),
          share(sum.own.assemble_seconds, span),
          share(sum.own.storage_wait_seconds, sum.own.assemble_seconds),
          share(sum.own.processor_wait_seconds, sum.own.assemble_seconds),
          share(sum.own.make_seconds, sum.own.assemble_seconds),
          share(sum.all.readahead_seconds, span),
          share(sum.handing_delay_seconds, span),
          share(sum.step_waited_seconds, sum.clients_waited_seconds),
          share(sum.producers.for_room(), sum.producers.connected),
          share(sum.producers.claims_staleness, sum.producers.connected)};
}

/// What producers waited for, for most of their waits; empty: they did not wait.
std::optional<Verdict> what_producers_waited_for(const Shares& shares, const LiveStatus& live) {
  if (shares.room_waits >= kNoticed && shares.room_waits >= shares.version_waits) {
    return Verdict{Bound::pool, fmt::format("producers waited for room {} of the time: {}",
                                            percent(shares.room_waits), pool_text(live))};
  }
  if (shares.version_waits < kNoticed) return {};
  return Verdict{Bound::staleness,
                 fmt::format("producers waited for a newer version {} of the time (max_staleness "
                             "{}): {}",
                             percent(shares.version_waits), live.max_staleness.value_or(0),
                             version_text(live))};
}

/// Why steps of a live feed were not cut that clients waited for. Where both sides wait, what lies
/// between them is the cause.
Verdict cause_of_step_waits(const Shares& shares, const FeedSample& sum, const LiveStatus& live) {
  if (live.wanted_slot_bytes != 0) {
    return {Bound::slots, fmt::format("a step waits for larger slots, of {}: raise memory, or make "
                                      "steps smaller",
                                      in_mib(live.wanted_slot_bytes))};
  }
  if (live.unrecorded_bytes != 0) {
    return {Bound::storage, fmt::format("steps wait for the record, to which {} are to be written",
                                        in_mib(live.unrecorded_bytes))};
  }
  if (auto waited = what_producers_waited_for(shares, live)) return *std::move(waited);
  if (sum.dropped_stale != 0 && 2 * sum.dropped_stale >= sum.accepted) {
    return {Bound::staleness,
            fmt::format("{} of {} sequences that producers pushed were dropped as too stale "
                        "(max_staleness {}): {}",
                        sum.dropped_stale, sum.accepted, live.max_staleness.value_or(0),
                        version_text(live))};
  }
  return {Bound::producers, supply_text(live)};
}

/// Of a live feed of which no client asked for a step, and none had one.
Verdict unasked_steps(const Shares& shares, const LiveStatus& live, const std::string& unasked) {
  const auto waited = what_producers_waited_for(shares, live);
  if (!waited) return {Bound::idle, fmt::format("{}; {}", unasked, supply_text(live))};
  return {waited->bound, fmt::format("{}; {}", unasked, waited->why)};
}

/// Why clients waited, where they did, with one figure. `all` is what the threads did for all
/// feeds, `hangs` says that batches were begun and none was finished.
Verdict cause_of_waits(const Shares& shares, const BusySeconds& all, const FeedMoment& moment,
                       bool hangs) {
  if (shares.slot_waits >= kMost) {
    return {Bound::slots, fmt::format("for slots that other clients held: raise slots to {}",
                                      moment.slots_to_set)};
  }
  // Work for others explains the waits only if the threads are busy, and mostly with that.
  const double others_part = share(moment.other.busy.assemble_seconds, all.assemble_seconds);
  if (shares.threads_busy >= kMost && others_part > kMost) {
    return {Bound::blocked,
            fmt::format("blocked by feed {}, for which assembly threads worked {} of the time",
                        moment.other.feed, percent(shares.threads_busy * others_part))};
  }
  if (hangs) {
    return {Bound::storage, "batches were begun and none was finished"};
  }
  // Unless they take so little time that the clients waited for something else.
  const double enough = kMost * shares.clients_waited;
  if (shares.own_processor >= kMost && shares.own_busy >= enough) {
    return {Bound::processor,
            fmt::format("in {} of the time of assembling its batches no processor was free",
                        percent(shares.own_processor))};
  }
  if (shares.handing_delayed >= enough) {
    return {Bound::processor,
            fmt::format("threads that hand batches over found no processor free for {} of the time",
                        percent(shares.handing_delayed))};
  }
  // This feed's own waits, or those of the threads it shares: either way pages come too late.
  if (shares.own_storage >= kMost) {
    return {Bound::storage,
            fmt::format("{} of the time of assembling its batches was spent waiting "
                        "for storage",
                        percent(shares.own_storage))};
  }
  const double threads_waited = shares.threads_busy * shares.threads_storage;  // of all their time
  if (threads_waited >= kMost) {
    return {Bound::storage, fmt::format("assembly threads waited for storage {} of the time",
                                        percent(threads_waited))};
  }
  if (shares.readahead_busy >= kSaturated) {
    return {Bound::storage, fmt::format("the readahead thread was busy {} of the time",
                                        percent(shares.readahead_busy))};
  }
  if (shares.own_making >= kMost) {
    return {Bound::features,
            fmt::format("{} of the time of assembling its batches was spent making rows by its "
                        "recipe: more assembly_threads, or cheaper steps (its page has the time of "
                        "each)",
                        percent(shares.own_making))};
  }
  return {Bound::assembly,
          fmt::format("assembly threads were busy {} of the time{}", percent(shares.threads_busy),
                      moment.planning ? "; an epoch is being planned" : "")};
}

}  // namespace

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::trainer: return "trainer-bound";
    case Bound::mixed: return "mixed";
    case Bound::producers: return "producer-bound";
    case Bound::pool: return "pool-bound";
    case Bound::staleness: return "staleness-bound";
    case Bound::slots: return "slot-bound";
    case Bound::storage: return "storage-bound";
    case Bound::processor: return "processor-bound";
    case Bound::assembly: return "assembly-bound";
    case Bound::features: return "feature-bound";
    case Bound::blocked: return "blocked";
    case Bound::idle: return "idle";
    case Bound::failed: return "failed";
  }
  return "unknown";
}

BusySeconds& BusySeconds::operator+=(const BusySeconds& other) {
  assemble_seconds += other.assemble_seconds;
  storage_wait_seconds += other.storage_wait_seconds;
  readahead_seconds += other.readahead_seconds;
  make_seconds += other.make_seconds;
  processor_wait_seconds += other.processor_wait_seconds;
  return *this;
}

BusySeconds& BusySeconds::operator-=(const BusySeconds& other) {
  assemble_seconds -= other.assemble_seconds;
  storage_wait_seconds -= other.storage_wait_seconds;
  readahead_seconds -= other.readahead_seconds;
  make_seconds -= other.make_seconds;
  processor_wait_seconds -= other.processor_wait_seconds;
  return *this;
}

void FeedWindow::add(const FeedSample& sample) {
  if (!samples_.empty()) {
    const FeedSample& last = samples_.back();
    if (sample.batches_assembled < last.batches_assembled ||
        sample.subscribed_seconds < last.subscribed_seconds) {
      // Counters only grow, so this is another feed under the same name.
      samples_.clear();
      past_.clear();
    }
  }
  samples_.push_back(sample);
  // The oldest stays until the next one spans the window, so the window is never shorter.
  while (samples_.size() > 2 && sample.taken - samples_[1].taken >= kSpan) samples_.pop_front();
  past_.push_back({sample.taken, rates().bytes_per_second});
  if (past_.size() > kPast) past_.pop_front();
}

double FeedWindow::seconds() const {
  if (samples_.size() < 2) return 0.0;
  return std::chrono::duration<double>(samples_.back().taken - samples_.front().taken).count();
}

FeedSample FeedWindow::difference() const {
  if (samples_.size() < 2) return {};
  FeedSample out = samples_.back();
  const FeedSample& from = samples_.front();
  out.delivered.sequences -= from.delivered.sequences;
  out.delivered.frames -= from.delivered.frames;
  out.delivered.padded_frames -= from.delivered.padded_frames;
  out.delivered.bytes -= from.delivered.bytes;
  out.batches_delivered -= from.batches_delivered;
  out.batches_assembled -= from.batches_assembled;
  out.own -= from.own;
  out.all -= from.all;
  out.clients_waited_seconds -= from.clients_waited_seconds;
  out.slot_waited_seconds -= from.slot_waited_seconds;
  out.step_waited_seconds -= from.step_waited_seconds;
  out.producers -= from.producers;
  out.accepted -= from.accepted;
  out.dropped_stale -= from.dropped_stale;
  out.handing_delay_seconds -= from.handing_delay_seconds;
  out.daemon_waited_seconds -= from.daemon_waited_seconds;
  out.subscribed_seconds -= from.subscribed_seconds;
  return out;
}

Rates FeedWindow::rates() const {
  const double span = seconds();
  if (span <= 0.0) return {};
  const FeedSample sum = difference();
  const auto per_second = [span](std::uint64_t n) { return static_cast<double>(n) / span; };
  return {per_second(sum.batches_delivered), per_second(sum.delivered.bytes),
          per_second(sum.delivered.frames), per_second(sum.delivered.sequences),
          padded_share(sum.delivered.frames, sum.delivered.padded_frames)};
}

Verdict FeedWindow::verdict(const FeedMoment& moment) const {
  // In the order of the table in REFERENCE.md: the first line that applies counts.
  if (moment.failed) return {Bound::failed, "see its reason"};
  if (moment.subscriptions == 0) {
    return {Bound::idle, moment.live == nullptr
                             ? "no client is subscribed"
                             : "no client is subscribed; " + supply_text(*moment.live)};
  }
  const double span = seconds();
  const FeedSample sum = difference();
  const Shares shares = shares_of(sum, span, moment.assembly_threads);
  const std::string waits = fmt::format(
      "in the last {:.0f} s clients waited for batches {} of the "
      "time",
      span, percent(shares.clients_waited));
  if (shares.clients_waited < kNoticed) {
    // Clients that hold all they may get are at work, though nothing is delivered.
    if (sum.batches_delivered == 0 && shares.daemon_waited < kNoticed) {
      const std::string unasked = fmt::format("no batch was requested in the last {:.0f} s", span);
      if (moment.live != nullptr) return unasked_steps(shares, *moment.live, unasked);
      return {Bound::idle, unasked};
    }
    return {Bound::trainer, fmt::format("{}, and the daemon for clients {}; {} batches are ready{}",
                                        waits, percent(shares.daemon_waited), moment.ready_slots,
                                        moment.live == nullptr ? "" : waits_text(*moment.live))};
  }
  // A batch that takes longer than the window is not in any sum yet.
  const bool hangs = span >= kLong && sum.batches_assembled == 0 && moment.filling_slots != 0;
  const bool for_steps = moment.live != nullptr && shares.step_waits >= kMost;
  const Verdict cause = for_steps ? cause_of_step_waits(shares, sum, *moment.live)
                                  : cause_of_waits(shares, sum.all, moment, hangs);
  // Where the daemon waited longer, mending the cause alone would gain little: the text says both.
  if (shares.daemon_waited <= shares.clients_waited) {
    return {cause.bound, fmt::format("{}; {}", waits, cause.why)};
  }
  return {Bound::mixed, fmt::format("{}, and the daemon longer for them; clients' waits are {}: {}",
                                    waits, name_of(cause.bound), cause.why)};
}

}  // namespace batchwright
