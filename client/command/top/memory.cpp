#include "client/command/top/memory.h"

#include <algorithm>
#include <utility>

#include "client/command/top/figures.h"

namespace batchwright {

std::string TopMemory::key_of(const boost::json::value& feed, const boost::json::value& client) {
  // No name has a line break in it once it is printable. Daemons may give equal sessions.
  return text_at(feed, "name") + "\n" + text_at(client, "host") + "\n" +
         text_at(client, "session") + "." + std::to_string(number_or_0(client, "subscription"));
}

void TopMemory::add(const boost::json::value& stats) {
  const double of_page = number_or_0(stats, "uptime_seconds");
  std::map<std::string, std::deque<Sample>> seen;
  for (const auto& feed : items_at(stats, "feeds")) {
    for (const auto& client : items_at(feed, "subscribers")) {
      const std::string key = key_of(feed, client);
      const double uptime = number_at(client, "uptime_seconds").value_or(of_page);
      // Moved over: what is not on this page any more goes with the old map.
      std::deque<Sample> samples = std::move(samples_[key]);
      // A daemon that was started again counts from 0, and may use the same numbers again.
      if (!samples.empty() && uptime < samples.back().uptime) samples.clear();
      samples.push_back({uptime, number_or_0(client, "waited_for_daemon_seconds"),
                         number_or_0(client, "waited_for_client_seconds"),
                         number_or_0(client, "delivered_batches")});
      // One that is a little older stays, so that there is a whole span behind the newest.
      while (uptime - samples.front().uptime > kSpanSeconds + 1) samples.pop_front();
      seen[key] = std::move(samples);
    }
  }
  samples_ = std::move(seen);
}

std::optional<RecentShares> TopMemory::recent(const boost::json::value& feed,
                                              const boost::json::value& client) const {
  const auto found = samples_.find(key_of(feed, client));
  if (found == samples_.end()) return std::nullopt;
  const auto& samples = found->second;
  const Sample& last = samples.back();
  const Sample& first = *std::find_if(samples.begin(), samples.end(), [&](const Sample& each) {
    return last.uptime - each.uptime <= kSpanSeconds;
  });
  // By the daemon's clock: the time that a page takes to arrive is in no figure.
  const double seconds = last.uptime - first.uptime;
  if (seconds <= 0) return std::nullopt;
  const auto grown = [&](double Sample::*figure) {
    // A client that subscribed again under its old number has smaller sums.
    return std::max(0.0, last.*figure - first.*figure) / seconds;
  };
  return RecentShares{grown(&Sample::waited_for_daemon), grown(&Sample::waited_for_client),
                      grown(&Sample::batches)};
}

}  // namespace batchwright
