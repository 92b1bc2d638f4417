#include "daemon/delivery/peer_limiter.h"

namespace batchwright {

PeerLimiter& PeerLimiters::of(const PeerName& peer, Clock::time_point now) {
  if (const auto found = offenders_.find(peer); found != offenders_.end()) return found->second;
  if (offenders_.size() >= kMost) offenders_.clear();
  return offenders_.emplace(peer, now).first->second;
}

bool PeerLimiters::ignores(const PeerName& peer) const {
  const auto found = offenders_.find(peer);
  return found != offenders_.end() && found->second.is_banned();
}

}  // namespace batchwright
