#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "formats/formats.h"

namespace batchwright {

/// Epochs that could not be planned, why, and when each is tried again.
///
/// A plan is a pure function of data and settings, so what is infeasible stays so while these do.
/// All else may pass: reader slots that are taken, a folder that is away for a moment, a disk's
/// error, lack of memory.
/// Threads: the event loop only.
class PlanFailures {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds kFirstPause{250};
  static constexpr std::chrono::milliseconds kLongestPause{8000};
  /// Epochs remembered. The bound is for a client that asks for one impossible epoch after another.
  static constexpr std::size_t kMost = 1024;

  /// `data_may_grow`: infeasible epochs are tried again, too.
  explicit PlanFailures(bool data_may_grow) : data_may_grow_(data_may_grow) {}

  /// Each time in a row an epoch fails the pause is twice as long.
  void add(Epoch epoch, const Error& error, Time now);
  /// True when the epoch had failed before.
  bool clear(Epoch epoch) { return entries_.erase(epoch) > 0; }
  /// Null when the epoch has not failed.
  const Error* find(Epoch epoch) const;
  /// Why subscriptions in the epoch are refused: it is infeasible, and not to be tried yet. Null:
  /// it has not failed, or the failure may pass.
  const Error* refusal(Epoch epoch, Time now) const;
  /// Whether it is not to be tried yet.
  bool is_pausing(Epoch epoch, Time now) const;
  /// When the first of these epochs is to be tried again, of those that pause.
  std::optional<Time> next_try(const std::set<Epoch>& epochs, Time now) const;

 private:
  struct Entry {
    Error error;
    std::chrono::milliseconds pause;
    Time again;
  };
  bool data_may_grow_;
  std::map<Epoch, Entry> entries_;
};

}  // namespace batchwright
