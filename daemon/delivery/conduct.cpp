#include "daemon/delivery/conduct.h"

namespace batchwright {

Conduct& ConductTable::of(const PeerName& peer, Clock::time_point now) {
  if (const auto found = offenders_.find(peer); found != offenders_.end()) return found->second;
  if (offenders_.size() >= kMost) offenders_.clear();
  return offenders_.emplace(peer, now).first->second;
}

bool ConductTable::ignores(const PeerName& peer) const {
  const auto found = offenders_.find(peer);
  return found != offenders_.end() && found->second.is_past_bearing();
}

}  // namespace batchwright
