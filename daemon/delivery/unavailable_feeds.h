#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "daemon/delivery/pending_subscriptions.h"
#include "daemon/delivery/repeating_timer.h"

namespace batchwright {

/// The feeds that cannot be served for now, each with its reason, and the clients that wait for
/// them.
///
/// Lifetime: destroyed when the loop no longer runs.
/// Threads: the event loop only.
class UnavailableFeeds {
 public:
  using Pending = PendingSubscriptions::Pending;
  /// Called on the loop, not from within a call, for a request that has waited for too long.
  using GiveUp = std::function<void(const Pending&, const Error& why)>;

  /// `grace`: how long a client waits; 0: it does not.
  UnavailableFeeds(boost::asio::io_context& loop, std::chrono::milliseconds grace, GiveUp give_up);

  void set_grace(std::chrono::milliseconds grace) { grace_ = grace; }
  /// Whether clients wait for absent feeds at all.
  bool lets_wait() const { return grace_.count() != 0; }

  /// Adds a feed, or updates its reason. The arena's number that is known stays known.
  void set(UnavailableFeed feed);
  /// Null when it is not absent.
  const UnavailableFeed* find(std::string_view name) const;
  const std::vector<UnavailableFeed>& all() const { return feeds_; }
  /// The feed is absent no longer. Returns the requests that wait for it, in the order in which
  /// they came, with those of an earlier feed of its name.
  std::vector<Pending> take_out(std::string_view name);

  /// Lets a client wait for the feed. Errors: why it is not served, where nothing waits for that;
  /// those of PendingSubscriptions::let_in().
  Result<void> let_wait(const ClientInfo& client, const wire::Subscribe& request,
                        const UnavailableFeed& feed);
  /// The requests that wait. All that wait came by let_wait().
  PendingSubscriptions& pending() { return pending_; }
  const PendingSubscriptions& pending() const { return pending_; }
  /// The feed for which this subscription waits; null when it does not.
  const UnavailableFeed* awaited_by(const SubscriptionKey& key) const;

 private:
  bool give_up_overdue();

  std::vector<UnavailableFeed> feeds_;
  PendingSubscriptions pending_;
  std::chrono::milliseconds grace_;
  GiveUp give_up_;
  RepeatingTimer rounds_;  ///< Looks for requests that have waited for too long.
};

}  // namespace batchwright
