#pragma once

#include <string>

#include "daemon/delivery/feed/core/feed_parts.h"

namespace batchwright {

/// What a subscription waits for, as a client and the log are told: a plan, its own releases, the
/// slowest client, a batch that is being assembled, or the slots and their holders.
std::string reason_to_wait(const FeedParts& feed, const Subscription& subscription,
                           WaitingTimes::Time now);

}  // namespace batchwright
