#include "daemon/reload/retries.h"

#include <algorithm>
#include <utility>

namespace batchwright {

namespace {

constexpr Retries::Time kNever = Retries::Time::max();

/// What is left of a reason without its figures: how much memory or room there is changes from one
/// try to the next, and is no news.
std::string without_figures(std::string reason) {
  std::erase_if(reason, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return reason;
}

}  // namespace

void Retries::begin(const std::string& feed, Time now) {
  feeds_.insert_or_assign(feed, Feed{{}, now, {}, now});
}

void Retries::trying(const std::string& feed) {
  const auto found = feeds_.find(feed);
  if (found != feeds_.end() && found->second.due) found->second.due = kNever;
}

bool Retries::failed(const std::string& feed, const std::string& reason, Time now) {
  const auto [found, is_new] = feeds_.try_emplace(feed, Feed{{}, now, kFirst, {}});
  Feed& waits = found->second;
  if (!is_new) {
    // `due` is empty while the feed is served, and `since` is when that began.
    const bool settled = !waits.due && now - waits.since >= kSettled;
    waits.pause = settled ? kFirst : std::clamp(2 * waits.pause, kFirst, kLongest);
    // Of several failures in a row the first counts: that is how long it was gone.
    if (!waits.due) waits.since = now;
  }
  waits.due = now + waits.pause;
  std::string told = without_figures(reason);
  return std::exchange(waits.reason, told) != told;
}

std::optional<std::chrono::seconds> Retries::served(const std::string& feed, Time now) {
  const auto found = feeds_.find(feed);
  if (found == feeds_.end() || !found->second.due) return std::nullopt;
  const auto took = now - found->second.since;
  found->second.due.reset();
  found->second.since = now;
  // The same reason is told again, should the feed fail again.
  const bool was_reported = !std::exchange(found->second.reason, {}).empty();
  if (!was_reported) return std::nullopt;
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
    if (feed.due && *feed.due != kNever && (!next || *feed.due < *next)) next = feed.due;
  }
  return next;
}

}  // namespace batchwright
