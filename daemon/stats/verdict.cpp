#include "daemon/stats/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright {
namespace {

/// Waits of clients below this share of their time are what handing over takes.
constexpr double kNoticed = 0.05;
/// From this share on a thread has little else to do.
constexpr double kMost = 0.5;
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
  double assembly_busy;  ///< Of all assembly threads' time.
  double storage;        ///< Of the assembly threads' busy time.
  double readahead_busy;
};

std::string who_waited(const Shares& shares, double seconds) {
  return fmt::format(
      "in the last {:.0f} s clients waited for batches {} of the time, and the daemon for "
      "clients {}",
      seconds, percent(shares.clients_waited), percent(shares.daemon_waited));
}

}  // namespace

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::trainer: return "trainer-bound";
    case Bound::storage: return "storage-bound";
    case Bound::assembly: return "assembly-bound";
    case Bound::idle: return "idle";
    case Bound::failed: return "failed";
  }
  return "unknown";
}

void FeedWindow::add(const FeedSample& sample) {
  if (!samples_.empty()) {
    const FeedSample& last = samples_.back();
    if (sample.batches_assembled < last.batches_assembled ||
        sample.subscribed_seconds < last.subscribed_seconds) {
      samples_.clear();
    }
  }
  samples_.push_back(sample);
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
  out.assemble_seconds -= from.assemble_seconds;
  out.storage_wait_seconds -= from.storage_wait_seconds;
  out.readahead_seconds -= from.readahead_seconds;
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
  Rates rates{per_second(sum.batches_delivered),
              per_second(sum.delivered.bytes),
              per_second(sum.delivered.frames),
              per_second(sum.delivered.sequences),
              {}};
  if (sum.delivered.padded_frames != 0) {
    rates.padded_share = 1.0 - static_cast<double>(sum.delivered.frames) /
                                   static_cast<double>(sum.delivered.padded_frames);
  }
  return rates;
}

Verdict FeedWindow::verdict(const FeedMoment& moment) const {
  if (moment.failed) return {Bound::failed, "the feed has failed, see its reason"};
  if (moment.subscriptions == 0) return {Bound::idle, "nobody is subscribed"};
  const double span = seconds();
  const FeedSample sum = difference();
  const Shares shares{share(sum.clients_waited_seconds, sum.subscribed_seconds),
                      share(sum.daemon_waited_seconds, sum.subscribed_seconds),
                      share(sum.assemble_seconds, span * moment.assembly_threads),
                      share(sum.storage_wait_seconds, sum.assemble_seconds),
                      share(sum.readahead_seconds, span)};
  const std::string waits = who_waited(shares, span);
  if (shares.clients_waited < kNoticed || shares.clients_waited <= shares.daemon_waited) {
    if (sum.batches_delivered == 0 && shares.daemon_waited < kNoticed) {
      return {Bound::idle, "nothing was asked for: " + waits};
    }
    return {Bound::trainer, fmt::format("{}; {} batches lie ready", waits, moment.ready_slots)};
  }
  const std::string threads =
      fmt::format("{}; assembly threads were busy {} of the time, {} of that waiting for storage",
                  waits, percent(shares.assembly_busy), percent(shares.storage));
  // A batch that takes longer than the window is not in any sum yet.
  const bool hangs = span >= kLong && sum.batches_assembled == 0 && moment.filling_slots != 0;
  if (shares.storage >= kMost || shares.readahead_busy >= kSaturated || hangs) {
    return {Bound::storage,
            fmt::format("{}, readahead {}", threads, percent(shares.readahead_busy))};
  }
  return {Bound::assembly, threads + (moment.planning ? "; an epoch is being planned" : "")};
}

}  // namespace batchwright
