#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "daemon/delivery/wire/wire.h"

namespace batchwright {

/// The offences of one peer, and how many are tolerated. Messages that cannot be read are a fault
/// of the program; requests that are refused may be a matter of timing, so they are forgiven, one a
/// second. Threads: one at a time.
class PeerLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::uint32_t kMalformed = 3;  ///< The last of these is one too many.
  static constexpr std::uint32_t kRefused = 64;   ///< Refused requests in a row without a pause.

  explicit PeerLimiter(Clock::time_point now) : forgiven_(now) {}

  std::uint32_t malformed() { return ++malformed_; }

  /// Counts one more refused request.
  void refused(Clock::time_point now) {
    forgive(now);
    ++refused_;
  }
  /// Counts one more refused request while it is tolerated; false, without counting, once it would
  /// be one too many.
  bool try_charge(Clock::time_point now) {
    forgive(now);
    if (refused_ >= kRefused) return false;
    ++refused_;
    return true;
  }

  /// The peer is no longer listened to.
  bool is_banned() const { return malformed_ >= kMalformed || refused_ > kRefused; }
  bool is_over_limit() const { return refused_ > kRefused; }

 private:
  void forgive(Clock::time_point now) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - forgiven_);
    forgiven_ += seconds;
    refused_ -= static_cast<std::uint32_t>(std::min<std::int64_t>(seconds.count(), refused_));
  }

  Clock::time_point forgiven_;
  std::uint32_t malformed_ = 0;
  std::uint32_t refused_ = 0;
};

/// The conduct of the peers that have offended. Bounded: with kMost of them remembered, the next
/// one makes all forgotten. Threads: one at a time. Time is an argument.
class PeerLimiters {
 public:
  using Clock = PeerLimiter::Clock;

  static constexpr std::size_t kMost = 1024;

  /// The conduct of a peer, valid until the next call.
  PeerLimiter& of(const PeerName& peer, Clock::time_point now);
  /// Whether the peer is no longer listened to.
  bool ignores(const PeerName& peer) const;

 private:
  std::map<PeerName, PeerLimiter> offenders_;
};

}  // namespace batchwright
