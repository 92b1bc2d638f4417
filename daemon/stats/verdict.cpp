#include "daemon/stats/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright {
namespace {

/// Waits of clients below this share of their time are what handing over takes.
constexpr double kNoticed = 0.05;
/// The share from which on a thread has little else to do.
constexpr double kMost = 0.5;
/// One readahead thread looks up rows: it limits a feed only when nearly all its time is taken.
constexpr double kSaturated = 0.9;
/// A feed with this share of all work is the only one that matters.
constexpr double kAlone = 0.995;
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
  double threads_busy;     ///< Busy share of all assembly threads' time, for any feed.
  double threads_storage;  ///< The part of it spent waiting for pages.
  double own_part;         ///< The part of it for this feed.
  double own_storage;      ///< The part of this feed's time spent waiting for pages.
  double readahead_busy;
  double own_making;  ///< The part of this feed's time spent making rows.
};

std::string who_waited(const Shares& shares, double seconds) {
  return fmt::format(
      "in the last {:.0f} s clients waited for batches {} of the time, and the daemon for "
      "clients {}",
      seconds, percent(shares.clients_waited), percent(shares.daemon_waited));
}

/// All feeds share the threads: a feed may also wait because of work for others.
std::string what_threads_did(const Shares& shares) {
  const std::string all =
      fmt::format("assembly threads were busy {} of the time, {} of that waiting for storage",
                  percent(shares.threads_busy), percent(shares.threads_storage));
  if (shares.own_part > kAlone) return all;
  return fmt::format("{}; {} of their work was for this feed, {} of that waiting for storage", all,
                     percent(shares.own_part), percent(shares.own_storage));
}

/// Why clients waited, where they did. `all` is what the threads did for all feeds, `hangs` says
/// that batches were begun and none was finished.
Verdict cause_of_waits(const Shares& shares, const BusySeconds& all, const FeedMoment& moment,
                       bool hangs) {
  const BusySeconds& other = moment.other.busy;
  // Work for others explains the waits only if the threads are busy, and mostly with that.
  const double others_part = share(other.assemble_seconds, all.assemble_seconds);
  if (shares.threads_busy >= kMost && others_part > kMost) {
    return {Bound::blocked,
            fmt::format("blocked by feed {}: assembly threads were busy {} of the time, {} of that "
                        "for its batches ({} of it waiting for storage) and {} for this feed's",
                        moment.other.feed, percent(shares.threads_busy), percent(others_part),
                        percent(share(other.storage_wait_seconds, other.assemble_seconds)),
                        percent(shares.own_part))};
  }
  const std::string threads = what_threads_did(shares);
  const double threads_waited = shares.threads_busy * shares.threads_storage;  // of all their time
  // This feed's own waits, or those of the threads it shares: either way pages come too late.
  if (shares.own_storage >= kMost || threads_waited >= kMost ||
      shares.readahead_busy >= kSaturated || hangs) {
    return {Bound::storage,
            fmt::format("{}, readahead {}", threads, percent(shares.readahead_busy))};
  }
  if (shares.own_making >= kMost) {
    return {Bound::features,
            fmt::format("{}; {} of the work for this feed is making rows by its recipe: more "
                        "assembly_threads, or cheaper steps (its page has the time of each)",
                        threads, percent(shares.own_making))};
  }
  return {Bound::assembly,
          fmt::format("{}{}{}", threads, moment.planning ? "; an epoch is being planned" : "",
                      moment.all_held ? "; clients hold all slots" : "")};
}

}  // namespace

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::trainer: return "trainer-bound";
    case Bound::mixed: return "mixed";
    case Bound::storage: return "storage-bound";
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
  return *this;
}

BusySeconds& BusySeconds::operator-=(const BusySeconds& other) {
  assemble_seconds -= other.assemble_seconds;
  storage_wait_seconds -= other.storage_wait_seconds;
  readahead_seconds -= other.readahead_seconds;
  make_seconds -= other.make_seconds;
  return *this;
}

void FeedWindow::add(const FeedSample& sample) {
  if (!samples_.empty()) {
    const FeedSample& last = samples_.back();
    if (sample.batches_assembled < last.batches_assembled ||
        sample.subscribed_seconds < last.subscribed_seconds) {
      // Counters only grow, so this is another feed under the same name.
      samples_.clear();
    }
  }
  samples_.push_back(sample);
  // The oldest stays until the next one spans the window, so the window is never shorter.
  while (samples_.size() > 2 && sample.taken - samples_[1].taken >= kSpan) samples_.pop_front();
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
  // In the order of the table in README.md: the first line that applies counts.
  if (moment.failed) return {Bound::failed, "see its reason"};
  if (moment.subscriptions == 0) return {Bound::idle, "no client is subscribed"};
  const double span = seconds();
  const FeedSample sum = difference();
  const Shares shares{share(sum.clients_waited_seconds, sum.subscribed_seconds),
                      share(sum.daemon_waited_seconds, sum.subscribed_seconds),
                      share(sum.all.assemble_seconds, span * moment.assembly_threads),
                      share(sum.all.storage_wait_seconds, sum.all.assemble_seconds),
                      share(sum.own.assemble_seconds, sum.all.assemble_seconds),
                      share(sum.own.storage_wait_seconds, sum.own.assemble_seconds),
                      share(sum.all.readahead_seconds, span),
                      share(sum.own.make_seconds, sum.own.assemble_seconds)};
  const std::string waits = who_waited(shares, span);
  if (shares.clients_waited < kNoticed) {
    // Clients that hold all they may get are at work, though nothing is delivered.
    if (sum.batches_delivered == 0 && shares.daemon_waited < kNoticed) {
      return {Bound::idle, fmt::format("nothing was asked for: {}", waits)};
    }
    return {Bound::trainer, fmt::format("{}; {} batches lie ready", waits, moment.ready_slots)};
  }
  // A batch that takes longer than the window is not in any sum yet.
  const bool hangs = span >= kLong && sum.batches_assembled == 0 && moment.filling_slots != 0;
  const Verdict cause = cause_of_waits(shares, sum.all, moment, hangs);
  // Where the daemon waited longer, mending the cause alone would gain little: the text says both.
  if (shares.daemon_waited <= shares.clients_waited) {
    return {cause.bound, fmt::format("{}; {}", waits, cause.why)};
  }
  return {Bound::mixed,
          fmt::format("{}; clients' waits are {}: {}", waits, name_of(cause.bound), cause.why)};
}

}  // namespace batchwright
