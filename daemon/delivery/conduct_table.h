#pragma once

#include <cstddef>
#include <map>

#include "daemon/delivery/conduct.h"
#include "daemon/delivery/wire/wire.h"

namespace batchwright {

/// The conduct of the peers that have offended. Bounded: with kMost of them remembered, the next
/// one makes all forgotten. Threads: one at a time. Time is an argument.
class ConductTable {
 public:
  using Clock = Conduct::Clock;

  static constexpr std::size_t kMost = 1024;

  /// The conduct of a peer, valid until the next call.
  Conduct& of(const PeerName& peer, Clock::time_point now);
  /// Whether the peer is no longer listened to.
  bool ignores(const PeerName& peer) const;

 private:
  std::map<PeerName, Conduct> offenders_;
};

}  // namespace batchwright
