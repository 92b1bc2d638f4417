#include "daemon/delivery/feed/long_waits.h"

namespace batchwright {

std::optional<std::chrono::seconds> LongWaits::note(const SubscriptionKey& key, bool waits,
                                                    std::uint64_t delivered, Time now) {
  if (!waits) {
    waiting_.erase(key);
    return {};
  }
  Wait& wait = waiting_.try_emplace(key, Wait{delivered, now}).first->second;
  if (wait.delivered != delivered) wait = {delivered, now};
  if (now - wait.since < kLook) return {};
  return std::chrono::duration_cast<std::chrono::seconds>(now - wait.since);
}

void LongWaits::leave(const SubscriptionKey& key, const WaitingTimes& waited, Time now) {
  waiting_.erase(key);
  before_.clients += waited.daemon_seconds(now);
  before_.daemon += waited.client_seconds(now);
}

}  // namespace batchwright
