#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "daemon/delivery/rounds.h"
#include "daemon/delivery/waiting_room.h"

namespace batchwright {

/// The feeds that cannot be served for now, each with its reason, and the clients that wait for
/// them.
///
/// Lifetime: destroyed when the loop no longer runs.
/// Threads: the event loop only.
class AbsentFeeds {
 public:
  using Guest = WaitingRoom::Guest;
  /// Called on the loop, not from within a call, for a request that has waited for too long.
  using GiveUp = std::function<void(const Guest&, const Error& why)>;

  /// `grace`: how long a client waits; 0: it does not.
  AbsentFeeds(boost::asio::io_context& loop, std::chrono::milliseconds grace, GiveUp give_up);

  void set_grace(std::chrono::milliseconds grace) { grace_ = grace; }
  /// Whether clients wait for absent feeds at all.
  bool lets_wait() const { return grace_.count() != 0; }

  /// Adds a feed, or updates its reason. The arena's number that is known stays known.
  void set(AbsentFeed feed);
  /// Null when it is not absent.
  const AbsentFeed* find(std::string_view name) const;
  const std::vector<AbsentFeed>& all() const { return feeds_; }
  /// The feed is absent no longer. Returns the requests that wait for it, in the order in which
  /// they came, with those of an earlier feed of its name.
  std::vector<Guest> take_out(std::string_view name);

  /// Lets a client wait for the feed. Errors: why it is not served, where nothing waits for that;
  /// those of WaitingRoom::let_in().
  Result<void> let_wait(const ClientInfo& client, const wire::Subscribe& request,
                        const AbsentFeed& feed);
  /// The requests that wait. All that wait came by let_wait().
  WaitingRoom& guests() { return guests_; }
  const WaitingRoom& guests() const { return guests_; }
  /// The feed for which this subscription waits; null when it does not.
  const AbsentFeed* awaited_by(const SubscriptionKey& key) const;

 private:
  bool give_up_overdue();

  std::vector<AbsentFeed> feeds_;
  WaitingRoom guests_;
  std::chrono::milliseconds grace_;
  GiveUp give_up_;
  Rounds rounds_;  ///< Looks for requests that have waited for too long.
};

}  // namespace batchwright
