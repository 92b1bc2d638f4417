#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "daemon/stats/counters.h"
#include "daemon/stats/live_status.h"
#include "daemon/stats/stages.h"

namespace batchwright {

/// The busy times of the threads that make batches.
struct BusySeconds {
  double assemble_seconds = 0.0;      ///< Time of all assembly threads.
  double storage_wait_seconds = 0.0;  ///< The part of it asleep until a page was there.
  double readahead_seconds = 0.0;
  double make_seconds = 0.0;  ///< The part of assembling that makes rows by a recipe.
  /// The part of assembling in which the thread could have gone on, and no processor was free.
  double processor_wait_seconds = 0.0;

  BusySeconds& operator+=(const BusySeconds& other);
  BusySeconds& operator-=(const BusySeconds& other);
};

/// Figures of a feed that only grow, taken at one moment.
struct FeedSample {
  std::chrono::steady_clock::time_point taken{};
  Delivered delivered;  ///< Deliveries to all subscribers.
  std::uint64_t batches_delivered = 0;
  std::uint64_t batches_assembled = 0;
  BusySeconds own;                      ///< Time for batches of this feed.
  BusySeconds all;                      ///< Time for batches of all feeds, which share the threads.
  double clients_waited_seconds = 0.0;  ///< Waits for the daemon, all subscriptions together.
  double slot_waited_seconds = 0.0;     ///< The part of them that was for slots.
  double step_waited_seconds = 0.0;     ///< That for steps of a live feed that were not cut.
  double daemon_waited_seconds = 0.0;   ///< Waits for a client, all subscriptions together.
  double subscribed_seconds = 0.0;      ///< Subscriptions times time: what these are shares of.
  /// Time that the daemon's other threads, which hand batches over, waited for a processor.
  double handing_delay_seconds = 0.0;
  // Of a live feed.
  ProducerWaits producers;
  std::uint64_t accepted = 0;  ///< Sequences.
  std::uint64_t dropped_stale = 0;
};

/// The rates between the window's ends, per second.
struct Rates {
  double batches_per_second = 0.0;
  double bytes_per_second = 0.0;
  double frames_per_second = 0.0;  ///< Real ones.
  double sequences_per_second = 0.0;
  std::optional<double> padded_share;  ///< Empty: nothing was delivered.
};

/// How fast a feed was at one moment.
struct PastRate {
  std::chrono::steady_clock::time_point taken{};
  double bytes_per_second = 0.0;
};

/// The other feed whose batches took most of the assembly threads' time in the window.
struct BusiestOther {
  std::string feed;  ///< Empty: there is no other.
  BusySeconds busy;
};

/// The feed's state when the verdict is given.
struct FeedMoment {
  bool failed = false;
  bool planning = false;            ///< An epoch that a subscription stands in is not planned yet.
  std::uint32_t subscriptions = 0;  ///< Subscriptions that still get batches.
  std::uint32_t ready_slots = 0;    ///< Slots with batches that a client will get.
  std::uint32_t filling_slots = 0;
  unsigned assembly_threads = 1;
  std::size_t slots_to_set = 0;  ///< So many would let all go on that wait for a slot.
  BusiestOther other = {};
  const LiveStatus* live = nullptr;  ///< Null: the feed has a dataset.
};

enum class Bound : std::uint8_t {
  trainer,
  mixed,
  producers,  ///< The next three are of live feeds.
  pool,
  staleness,
  slots,
  storage,
  processor,
  assembly,
  features,
  blocked,
  idle,
  failed
};

inline constexpr std::array kBounds{
    Bound::trainer, Bound::mixed,   Bound::producers, Bound::pool,     Bound::staleness,
    Bound::slots,   Bound::storage, Bound::processor, Bound::assembly, Bound::features,
    Bound::blocked, Bound::idle,    Bound::failed};

/// "trainer-bound" and so on, as in /stats and in the label `bound` of /metrics.
const char* name_of(Bound bound);

/// The current limit of a feed's throughput, and the two figures behind it in one sentence.
struct Verdict {
  Bound bound = Bound::idle;
  std::string why;
};

/// The last ten seconds of a feed: what only grows, sampled once a second. All figures are
/// differences of two samples, so all readers within a second get the same ones.
/// Threads: one at a time.
class FeedWindow {
 public:
  static constexpr std::chrono::seconds kSpan{10};
  static constexpr std::chrono::seconds kInterval{1};
  /// Rates of so many samples are kept.
  static constexpr std::size_t kPast = 120;

  /// A sample that is smaller than the one before begins again: it is of another feed.
  void add(const FeedSample& sample);

  Rates rates() const;
  /// The rates at the last samples, oldest first.
  const std::deque<PastRate>& past() const { return past_; }
  /// The assembly threads' work for this feed.
  BusySeconds busy() const { return difference().own; }
  /// The rule is in REFERENCE.md.
  Verdict verdict(const FeedMoment& moment) const;

 private:
  FeedSample difference() const;
  double seconds() const;

  std::deque<FeedSample> samples_;  ///< Oldest first; at most one is older than kSpan.
  std::deque<PastRate> past_;
};

}  // namespace batchwright
