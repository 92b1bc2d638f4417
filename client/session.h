#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/arena_link.h"
#include "client/batch.h"
#include "client/deadline.h"
#include "client/dealer.h"
#include "client/feeds.h"
#include "client/lane.h"
#include "client/lease_book.h"

namespace batchwright {

/// One conversation with one daemon: sockets, arenas, subscriptions.
///
/// Two things are guarded. The *turn* belongs to the one thread that is in subscribe() or next();
/// a second one is told so. The *socket* is locked by who has the turn, and else for the moment it
/// takes to send what the lease book has to tell: a release finds it free and sends at once, or
/// finds it taken and wakes its holder, who sends it.
///
/// Lifetime: connection, subscriptions and held batches share it. The conversation ends by
///   close(), or by a failure; towards the daemon it ends once no batch is held any more, for then
///   the daemon takes its slots back.
/// Threads: as each method says.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// A batch, the end of an epoch, or neither: nothing follows.
  struct Event {
    std::unique_ptr<bw_batch> batch;
    std::optional<EpochEnded> ended;
  };

  /// `limit` holds for this call and for each subscribe(). Errors: as bw_connect() says.
  static Result<std::shared_ptr<Session>> connect(const std::string& endpoint,
                                                  const std::string& program,
                                                  std::chrono::milliseconds limit);

  Session(std::string endpoint, std::chrono::milliseconds limit);

  const Feeds& feeds() const { return *feeds_; }
  /// Whether this is a forked child's copy, which touches nothing.
  bool forked() const;

  /// Chooses the subscription's number. Errors: as bw_subscribe() says. Threads: the turn.
  Result<std::shared_ptr<Lane>> subscribe(wire::SubscribeT request);

  /// Errors: as bw_next() says. Threads: the turn.
  Result<Event> next(const std::shared_ptr<Lane>& lane, const Deadline& deadline);

  /// Threads: any, at any time. They do not wait for what another thread waits for.
  void give_back(std::uint32_t subscription, std::uint64_t lease);
  void unsubscribe(std::uint32_t subscription);
  void close();

 private:
  class Turn;

  /// All that ties us to one daemon.
  struct Link {
    SessionId session;
    std::unique_ptr<ArenaLink> arenas;  ///< Null until Welcome.
    std::map<std::uint32_t, std::shared_ptr<const Mapping>> mapped;
    std::unique_ptr<Dealer> dealer;  ///< Closed first, so that Bye precedes the connection's end.
  };

  Result<void> greet(const std::string& program);
  Result<void> welcomed(const wire::Welcome& welcome);
  Result<std::shared_ptr<Lane>> finish_subscribe(std::shared_ptr<Lane> lane, bool in_time);
  Result<Event> hand_out(const std::shared_ptr<Lane>& lane, const Ticket& ticket);
  Result<std::shared_ptr<const Mapping>> arena(std::uint32_t number);

  bool pump_until(const std::function<bool()>& done, const Deadline& deadline);
  void pump();
  void wait(const Deadline& deadline);
  void dispatch(const ControlMessage& message);
  void deliver(const wire::Delivery& delivery);
  void refused(const wire::Refused& refusal);
  Lane* find(std::uint32_t subscription);
  void fail(const Error& error);
  void end(Lane& lane, const Error& error);

  void tell_news();
  void tell_news_if_free();
  void wake_holder() const;
  void send(const flatbuffers::DetachedBuffer& message);

  Error no_welcome() const;
  Error nothing_came(const Lane& lane, const Deadline& deadline) const;
  Error daemon_gone(const std::string& how) const;

  const std::string endpoint_;
  const std::chrono::milliseconds limit_;
  const pid_t pid_;
  const Descriptor alarm_;  ///< An eventfd that wakes who waits on the socket.
  LeaseBook book_;
  std::atomic<bool> turn_taken_ = false;

  std::mutex socket_;
  // What follows is for who has locked the socket, but for feeds_, which connect() makes.
  std::optional<Link> link_;  ///< Empty once goodbye is said.
  std::unique_ptr<const Feeds> feeds_;
  std::map<std::uint32_t, std::shared_ptr<Lane>> lanes_;
  std::uint32_t last_number_ = 0;
  std::optional<Error> failure_;  ///< Why the conversation is over.
};

}  // namespace batchwright
