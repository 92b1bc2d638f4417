#include "daemon/delivery/feed/long_waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace batchwright {

std::string describe(const Blockage& blockage, WaitingTimes::Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - blockage.since);
  return fmt::format("the file system of {} has not answered for {} s", blockage.by,
                     seconds.count());
}

LongWaits::BlockNews LongWaits::look(std::optional<Blockage> waits_for, Time now) {
  if (waits_for && now - waits_for->since < kBlocked) waits_for.reset();
  BlockNews news;
  const bool is_same = waits_for && blockage_ && waits_for->by == blockage_->by;
  if (is_same) return news;
  news.is_blocked = waits_for.has_value();
  news.is_over = std::exchange(blockage_, std::move(waits_for));
  return news;
}

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
