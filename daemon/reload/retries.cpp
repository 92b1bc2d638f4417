#include "daemon/reload/retries.h"

#include <algorithm>
#include <utility>

namespace batchwright {

bool Retries::failed(const std::string& feed, const std::string& reason, Time now) {
  const auto [found, is_new] = feeds_.try_emplace(feed, Feed{{}, now, kFirst, {}});
  Feed& waits = found->second;
  if (!is_new) {
    // `due` is empty while the feed is served, and `since` is when that began.
    const bool settled = !waits.due && now - waits.since >= kSettled;
    waits.pause = settled ? kFirst : std::min(2 * waits.pause, kLongest);
    // Of several failures in a row the first counts: that is how long it was gone.
    if (!waits.due) waits.since = now;
  }
  waits.due = now + waits.pause;
  return std::exchange(waits.reason, reason) != reason;
}

std::chrono::seconds Retries::served(const std::string& feed, Time now) {
  const auto found = feeds_.find(feed);
  if (found == feeds_.end() || !found->second.due) return std::chrono::seconds(0);
  const auto took = now - found->second.since;
  found->second.due.reset();
  found->second.since = now;
  // The same reason is told again, should the feed fail again.
  found->second.reason.clear();
  return std::chrono::duration_cast<std::chrono::seconds>(took);
}

void Retries::put_off(const std::string& feed, Time now) {
  const auto found = feeds_.find(feed);
  // At the shortest pause, and without a step towards the longest.
  if (found != feeds_.end() && found->second.due) found->second.due = now + kFirst;
}

void Retries::keep(const std::set<std::string>& feeds) {
  std::erase_if(feeds_, [&feeds](const auto& entry) { return !feeds.contains(entry.first); });
}

bool Retries::waits(const std::string& feed) const {
  const auto found = feeds_.find(feed);
  return found != feeds_.end() && found->second.due.has_value();
}

std::vector<std::string> Retries::due(Time now) const {
  std::vector<std::string> all;
  for (const auto& [name, feed] : feeds_) {
    if (feed.due && *feed.due <= now) all.push_back(name);
  }
  return all;
}

std::optional<Retries::Time> Retries::next() const {
  std::optional<Time> next;
  for (const auto& [name, feed] : feeds_) {
    if (feed.due && (!next || *feed.due < *next)) next = feed.due;
  }
  return next;
}

}  // namespace batchwright
