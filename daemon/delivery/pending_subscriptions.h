#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/delivery/feed/feed.h"
#include "formats/formats.h"

namespace batchwright {

/// Requests to subscribe to feeds that are absent. They are kept until the feed is there, or for a
/// time, so that jobs wait for a late disk as they wait for a daemon that restarts. Bounded: kMost
/// of each session.
/// Threads: one at a time. Time is an argument.
class PendingSubscriptions {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 64;

  struct Pending {
    ClientInfo client;
    wire::SubscribeT request;
    Time since;
    bool said_so = false;  ///< It said that its program waits (Ask).
  };

  /// Errors: invalid_argument (the number is taken), does_not_fit.
  Result<void> let_in(const ClientInfo& client, const wire::Subscribe& request, Time now);
  /// Notes batches of a queue that the client has released meanwhile. They count as done once it is
  /// served.
  void release(const SubscriptionKey& key, std::span<const LeaseNumber> leases);
  /// Notes that the client's program waits; the feed hears of it once it is served.
  void note_question(const SubscriptionKey& key);
  void remove(const SubscriptionKey& key) { pending_.erase(key); }
  void remove_session(SessionId session);

  /// The request of a subscription; null when it does not wait.
  const Pending* find(const SubscriptionKey& key) const;
  bool empty() const { return pending_.empty(); }
  /// Takes out the requests for this feed, in the order in which they came.
  std::vector<Pending> all_for(std::string_view feed);
  /// Takes out the requests for this feed that have waited for so long.
  std::vector<Pending> overdue(std::string_view feed, Time now, std::chrono::milliseconds patience);
  /// The requests for this feed, in the order of their sessions.
  std::vector<const Pending*> waiting_for(std::string_view feed) const;

 private:
  template <class Leaves>
  std::vector<Pending> take(Leaves leaves);

  std::map<SubscriptionKey, Pending> pending_;
};

}  // namespace batchwright
