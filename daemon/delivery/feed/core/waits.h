#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/stats/stats.h"

namespace batchwright {

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
  std::optional<std::chrono::seconds> note(bool waits, std::uint64_t delivered, Time now);

 private:
  bool waits_ = false;
  std::uint64_t delivered_ = 0;
  Time since_{};
  std::optional<Time> long_until_;  ///< When a long wait was last seen.
  Time silent_until_{};
  std::chrono::seconds pause_ = kLook;
};

}  // namespace batchwright
