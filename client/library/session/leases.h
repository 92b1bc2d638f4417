#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "client/library/ids.h"
#include "formats/formats.h"

namespace batchwright {

/// The batches of one subscription that the program holds, and the releases that the daemon has yet
/// to hear of. It is all that a release touches, so that batches can be released while another
/// thread waits on the socket.
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
class Leases {
 public:
  /// What the daemon is to be told, in this order.
  struct Outbox {
    std::vector<LeaseNumber> done;  ///< Done batches of a queue that are still held.
    std::vector<LeaseNumber> releases;
    std::vector<LeaseNumber> returns;              ///< Batches of a queue that are not done.
    std::optional<std::vector<LeaseNumber>> rest;  ///< What a closed queue still holds; once.
    bool ended = false;                            ///< The subscription; once.
  };
  /// The leases to claim from a new daemon, in queue mode.
  struct Claims {
    std::vector<LeaseNumber> held;
    std::vector<LeaseNumber> released;
  };
  /// What of the connection's state decides what is told.
  struct Connection {
    bool closed = false;
    bool holds_any = false;  ///< Of any subscription.
  };
  /// So many releases are remembered.
  static constexpr std::size_t kRemembered = 1024;

  explicit Leases(bool queue) : queue_(queue) {}

  /// Empty when the subscription has ended, and in queue mode for a lease that is held or was
  /// released lately.
  std::optional<Lease> take(LeaseNumber number);
  void give_back(const Lease& lease);
  /// Gives a queue's batch back undone, unless it was marked as done. The same as give_back() in
  /// other modes.
  void give_back_undone(const Lease& lease);
  /// Marks a queue's batch as done before it is given back. Does nothing in other modes.
  void mark_done(const Lease& lease);
  /// Gives back a batch that is not to be handed out.
  void skip(LeaseNumber number);
  /// So many releases may wait for others before the daemon is told of them.
  void let_wait(std::size_t releases);

  void close();
  /// The daemon need not hear of the end.
  void end();
  /// Closed or ended.
  bool is_closed() const;
  bool is_ended() const;
  std::size_t held() const;

  /// A daemon serves the subscription; whether it can be told of batches that are not done.
  void begin_session(bool can_return);
  /// The daemon is gone, and with it what this side knew of it.
  void end_session();
  Claims claims();
  /// The daemon has answered the last claims.
  void confirm_claims();

  bool has_outbox(const Connection& connection) const;
  Outbox take_outbox(const Connection& connection);

 private:
  enum class State : std::uint8_t { open, closed, ended };

  void remember(std::vector<LeaseNumber>& leases) REQUIRES(mutex_);
  bool has_releases(bool connection_closed) const REQUIRES(mutex_);
  bool has_rest(const Connection& connection) const REQUIRES(mutex_);
  bool has_end(bool connection_closed) const REQUIRES(mutex_);

  const bool queue_;
  mutable Mutex mutex_;
  State state_ GUARDED_BY(mutex_) = State::open;
  std::uint64_t session_ GUARDED_BY(mutex_) = 1;
  bool can_return_ GUARDED_BY(mutex_) = false;
  bool rest_told_ GUARDED_BY(mutex_) =
      false;  ///< The daemon knows what is held, and gives no more.
  std::size_t held_ GUARDED_BY(mutex_) = 0;
  std::size_t may_wait_ GUARDED_BY(mutex_) = 0;
  std::vector<LeaseNumber> returned_ GUARDED_BY(mutex_);  ///< Released; not reported yet.
  // Queue mode only.
  std::set<LeaseNumber> holding_ GUARDED_BY(mutex_);
  std::set<LeaseNumber> kept_ GUARDED_BY(mutex_);  ///< Done, and held nevertheless.
  std::vector<LeaseNumber> finished_
      GUARDED_BY(mutex_);  ///< Those of them that the daemon has not heard of.
  std::deque<LeaseNumber> done_
      GUARDED_BY(mutex_);  ///< Reported, or to be claimed; the latest is the last.
  std::vector<LeaseNumber> claimed_
      GUARDED_BY(mutex_);  ///< Leases in claims that are not answered yet.
  std::vector<LeaseNumber> undone_ GUARDED_BY(mutex_);  ///< Given back undone; not reported yet.
};

}  // namespace batchwright
