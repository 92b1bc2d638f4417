#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "daemon/stats/stats.h"

namespace batchwright {

/// A file system that a feed waits for.
struct Blockage {
  std::string by;  ///< What lies on it: "dataset PATH".
  WaitingTimes::Time since;
};
/// "the file system of dataset PATH has not answered for 7 s".
std::string describe(const Blockage& blockage, WaitingTimes::Time now);

/// Whether a file system blocks a feed. Threads: one at a time.
class BlockageWatch {
 public:
  using Time = WaitingTimes::Time;

  /// A feed whose file system does not answer for so long is blocked.
  static constexpr std::chrono::seconds kBlocked{5};
  /// Between two looks whether it is.
  static constexpr std::chrono::seconds kLook{1};

  /// What a look has changed.
  struct News {
    bool is_blocked = false;          ///< It was not, or by another.
    std::optional<Blockage> is_over;  ///< What has blocked it, and does no longer.
  };
  /// Notes what the feed waits for; empty: for no file system.
  News look(std::optional<Blockage> waits_for, Time now);
  /// What blocks the feed, as it was looked at last.
  const std::optional<Blockage>& blockage() const { return blockage_; }

 private:
  std::optional<Blockage> blockage_;
};

}  // namespace batchwright
