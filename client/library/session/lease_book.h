#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The right to a batch, to be given back. The same number means something else in another
/// session, but in queue mode.
struct Lease {
  SubscriptionNumber subscription;
  std::uint64_t session = 0;  ///< The book's own count of sessions.
  LeaseNumber number;
};

/// The batches that each subscription holds, and the releases that the daemon has yet to hear of.
/// It is all that a release touches, so that batches can be released while another thread waits on
/// the socket.
///
/// A subscription that is closed stays open towards the daemon until the last of its batches is
/// released, for then the daemon takes its slots back; no credit is given back meanwhile, for the
/// batches it buys would not be wanted. The same holds for the whole connection. Of a queue the
/// daemon hears at once what is held: all else that it sent goes to other workers.
///
/// When the session is lost the daemon has taken back what it had given, and releases of it have no
/// meaning. In queue mode a release says that the batch is done, which must arrive: leases are kept
/// over the loss of a session, and what was released is remembered until a daemon surely knows. A
/// batch that is returned undone needs no such care: what is neither held nor released comes back.
/// A daemon without the ability takes it back at the end of its subscription.
/// Threads: any.
class LeaseBook {
 public:
  /// The news for the daemon, in this order.
  using Leases = std::vector<std::pair<SubscriptionNumber, std::vector<LeaseNumber>>>;
  struct News {
    Leases done;  ///< Done batches of queues that are still held.
    Leases releases;
    Leases returns;  ///< Batches of queues that are not done.
    Leases rests;    ///< What a queue's subscription still holds that was closed; once.
    std::vector<SubscriptionNumber> ended;  ///< Subscriptions.
    bool goodbye = false;                   ///< The connection; once.
  };
  /// The leases to claim from a new daemon, in queue mode.
  struct Claims {
    std::vector<LeaseNumber> held;
    std::vector<LeaseNumber> released;
  };
  /// So many releases are remembered.
  static constexpr std::size_t kRemembered = 1024;

  void open(SubscriptionNumber subscription, bool queue);
  /// It never came to be: the daemon need not hear of its end.
  void forget(SubscriptionNumber subscription);
  /// Empty when the subscription has ended, and in queue mode for a lease that is held or was
  /// released lately. Only open() makes an account: news of one that has ended are ignored.
  std::optional<Lease> take(SubscriptionNumber subscription, LeaseNumber number);
  void give_back(const Lease& lease);
  /// Gives a queue's batch back undone, unless it was marked as done. The same as give_back() in
  /// other modes.
  void give_back_undone(const Lease& lease);
  /// Whether this session's daemon can be told of batches that are not done.
  void let_return(bool can);
  /// Marks a queue's batch as done before it is given back. Does nothing in other modes.
  void done(const Lease& lease);
  /// Gives back a batch that is not to be handed out.
  void skip(SubscriptionNumber subscription, LeaseNumber number);
  /// So many releases of this subscription are no news by themselves: they may wait for others.
  /// None of any other subscription may, for the program may be long in coming back to it; and none
  /// with a new session.
  void let_wait(SubscriptionNumber subscription, std::size_t releases);
  void close(SubscriptionNumber subscription);
  void close_all();

  /// The daemon is gone, and with it what this side knew of it.
  void end_session();
  Claims claims(SubscriptionNumber subscription);
  /// The daemon has answered the last claims.
  void noted(SubscriptionNumber subscription);

  bool closed(SubscriptionNumber subscription) const;
  bool all_closed() const;
  std::size_t held(SubscriptionNumber subscription) const;
  /// Whether anything of this session, or of a queue, is held.
  bool holds_any() const;

  bool has_news() const;
  News take_news();

 private:
  struct Account {
    bool queue = false;
    bool closed = false;
    bool rest_told = false;  ///< The daemon knows what it holds, and gives it no more.
    std::size_t held = 0;
    std::vector<LeaseNumber> returned;  ///< Not reported yet.
    std::size_t may_wait = 0;           ///< So many of them are no news by themselves.
    // Queue mode only.
    std::set<LeaseNumber> holding;
    std::set<LeaseNumber> kept;         ///< Done, and held nevertheless.
    std::vector<LeaseNumber> finished;  ///< Those of them that the daemon has not heard of.
    std::deque<LeaseNumber> done;       ///< Reported, or to be claimed; the latest is the last.
    std::vector<LeaseNumber> claimed;   ///< Leases in claims that are not answered yet.
    std::vector<LeaseNumber> undone;    ///< Returned, and not reported yet.
  };
  static void remember(Account& account, const std::vector<LeaseNumber>& leases);
  bool has_releases(const Account& account) const;
  bool has_rest(const Account& account) const;
  bool may_say_goodbye() const;

  mutable std::mutex mutex_;
  std::map<SubscriptionNumber, Account> accounts_;  // an ended subscription's is erased
  std::uint64_t session_ = 1;
  std::size_t held_ = 0;
  bool all_closed_ = false;
  bool goodbye_said_ = false;
  bool can_return_ = false;
};

}  // namespace batchwright
