#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "daemon/delivery/feed/roster/subscription_key.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// How long the subscriptions of a feed waited, those that are gone included.
struct WaitedSeconds {
  double clients = 0.0;  ///< For the daemon.
  double slots = 0.0;    ///< The part of it that was for slots, which others held.
  double daemon = 0.0;   ///< For a client.
};

/// A file system that a feed waits for.
struct Blockage {
  std::string by;  ///< What lies on it: "dataset PATH".
  WaitingTimes::Time since;
};
/// "the file system of dataset PATH has not answered for 7 s".
std::string describe(const Blockage& blockage, WaitingTimes::Time now);

/// Which subscriptions of a feed wait for other clients, and since when; which of them the log is
/// to name; how long those waited that are gone; and whether a file system blocks the feed.
/// Threads: one at a time.
class LongWaits {
 public:
  using Time = WaitingTimes::Time;

  /// A wait is looked at so often, and is long from so long on.
  static constexpr std::chrono::seconds kLook{1};
  /// A subscription that has long waits again and again is named after pauses that grow up to this.
  static constexpr std::chrono::seconds kMostPause{600};
  /// A job that does not say how many of its ranks are on this host has so long to gather here.
  static constexpr std::chrono::seconds kGathering{5};

  /// A client has subscribed.
  void come(Time now) { last_came_ = now; }
  /// Whether ranks that did not come by now are elsewhere.
  bool is_gathering_over(Time now) const { return now - last_came_ >= kGathering; }

  /// Notes whether a subscription waits for other clients, and how many batches it was given by
  /// now. How long it waits for the next one, where that is long, and is to be told: pauses between
  /// that double as long as its waits go on, and are a second again once it had none for a pause.
  std::optional<std::chrono::seconds> note(const SubscriptionKey& key, bool waits,
                                           std::uint64_t delivered, Time now);
  /// A feed whose file system does not answer for so long is blocked.
  static constexpr std::chrono::seconds kBlocked{5};
  /// Between two looks whether it is.
  static constexpr std::chrono::seconds kBlockLook{1};

  /// What a look has changed.
  struct BlockNews {
    bool is_blocked = false;          ///< It was not, or by another.
    std::optional<Blockage> is_over;  ///< What has blocked it, and does no longer.
  };
  /// Notes what the feed waits for; empty: for no file system.
  BlockNews look(std::optional<Blockage> waits_for, Time now);
  /// What blocks the feed, as it was looked at last.
  const std::optional<Blockage>& blockage() const { return blockage_; }

  /// A subscription goes.
  void leave(const SubscriptionKey& key, const WaitingTimes& waited, Time now);
  /// All of them go, whose waits are not counted.
  void clear() { waits_.clear(); }
  /// What those that have left waited.
  const WaitedSeconds& before() const { return before_; }

 private:
  struct Wait {
    bool waits = false;
    std::uint64_t delivered = 0;
    Time since{};
    std::optional<Time> long_until;  ///< When a long wait was last seen.
    Time silent_until{};
    std::chrono::seconds pause = kLook;
  };
  std::map<SubscriptionKey, Wait> waits_;
  Time last_came_{};
  WaitedSeconds before_;
  std::optional<Blockage> blockage_;
};

}  // namespace batchwright
