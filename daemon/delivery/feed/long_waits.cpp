#include "daemon/delivery/feed/long_waits.h"

#include <algorithm>

namespace batchwright {

std::optional<std::chrono::seconds> LongWaits::note(const SubscriptionKey& key, bool waits,
                                                    std::uint64_t delivered, Time now) {
  Wait& wait = waits_[key];
  if (waits && (!wait.waits || wait.delivered != delivered)) wait.since = now;
  wait.waits = waits;
  wait.delivered = delivered;
  if (!waits || now - wait.since < kLook) return {};
  const bool was_calm = !wait.long_until || now - *wait.long_until > wait.pause + kLook;
  wait.long_until = now;
  if (!was_calm && now < wait.silent_until) return {};
  wait.pause = was_calm ? kLook : std::min(2 * wait.pause, kMostPause);
  wait.silent_until = now + wait.pause;
  return std::chrono::duration_cast<std::chrono::seconds>(now - wait.since);
}

void LongWaits::leave(const SubscriptionKey& key, const WaitingTimes& waited, Time now) {
  waits_.erase(key);
  before_.clients += waited.daemon_seconds(now);
  before_.slots += waited.slot_seconds(now);
  before_.daemon += waited.client_seconds(now);
}

}  // namespace batchwright
