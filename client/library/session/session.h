#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/library/deadline.h"
#include "client/library/link/daemon_link.h"
#include "client/library/memory/batch.h"
#include "client/library/session/client_subscription.h"
#include "client/library/settings.h"

namespace batchwright {

/// One conversation with one daemon: what a program asks of it, over a link that is made again when
/// the daemon is gone. Then the next daemon is asked to go on where the program is.
///
/// Two things are guarded. The *turn* belongs to the one thread that is in subscribe() or next(); a
/// second one gets an error. The *link* is locked by the thread that has the turn, and otherwise
/// for the moment it takes to send what the leases have to tell: a release finds it free and sends
/// at once, or finds it taken and wakes its holder, which sends it.
///
/// Lifetime: connection, subscriptions and held batches share it. The conversation ends by
///   close(), or by a failure; towards the daemon it ends once no batch is held, for then the
///   daemon takes its slots back.
/// Threads: as each method says.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Coming = ClientSubscription::Coming;
  /// A batch, the end of an epoch, or neither: nothing follows.
  struct Event {
    std::unique_ptr<bw_batch> batch;
    std::optional<EpochEnded> ended;
  };
  struct Upcoming {
    std::vector<wire::UpcomingBatch> batches;
    std::size_t certain = 0;  ///< How many of the first no other worker of a queue can get.
  };

  /// Errors: as bw_connect() says.
  static Result<std::shared_ptr<Session>> connect(const std::string& endpoint,
                                                  ConnectSettings settings,
                                                  std::unique_ptr<Transport> transport);

  Session(std::string endpoint, ConnectSettings settings, std::unique_ptr<Transport> transport)
      : link_(std::move(endpoint), std::move(settings), std::move(transport)) {}

  /// What the link says to any thread.
  const DaemonLink& link() const { return link_; }

  /// Chooses the subscription's number. Errors: as bw_subscribe() says. Threads: the turn.
  Result<std::shared_ptr<ClientSubscription>> subscribe(wire::SubscribeT wanted,
                                                        bool writable = false);
  /// Errors: as bw_next() says. Threads: the turn.
  Result<Event> next(const std::shared_ptr<ClientSubscription>& subscription,
                     const Deadline& deadline);
  /// The event that next() would return, without taking it. Errors: the same.
  Result<Coming> peek(ClientSubscription& subscription, const Deadline& deadline);
  /// The batches that come next, at most so many: those that have come and were not taken, and then
  /// those of the daemon's plans. Errors: as bw_subscription_upcoming() says. Threads: the turn.
  Result<Upcoming> upcoming(ClientSubscription& subscription, std::uint32_t count,
                            const Deadline& deadline);
  /// Announces a version of a live feed, within the connection's limit; waits for one; marks a
  /// step; ends the feed. Errors: as bw_advance(), bw_wait_version(), bw_keep_from() and
  /// bw_end_feed() say, except for those that the answer has. Threads: the turn.
  Result<wire::VersionT> advance(wire::AdvanceT what);
  Result<wire::VersionT> await_version(wire::AwaitVersionT what, const Deadline& deadline);
  Result<void> keep_from(wire::KeepFromT what);
  Result<void> end_feed(wire::EndFeedT what, bool is_known);
  /// The end of a wait that begins now. Threads: any.
  Deadline after(std::chrono::milliseconds limit) const { return {limit, link_.now()}; }

  /// Tells the daemon what is new of the subscription's leases, or wakes the thread that will.
  /// Threads: any, at any time. They do not wait for what another thread waits for.
  void tell(const ClientSubscription& subscription);
  void unsubscribe(ClientSubscription& subscription);
  void close();

  /// Whether messages of this kind are taken.
  static bool handles(wire::Body kind);

 private:
  class Turn;
  struct Handler {
    wire::Body kind;
    Result<void> (Session::*handle)(const DaemonSocket::Incoming&);  ///< Null: nothing is to do.
  };
  static const Handler kHandlers[];

  // session.cpp: what the program asks for
  bool take_turn() TRY_ACQUIRE(turn_mutex_, link_mutex_);
  Result<void> await_grant(ClientSubscription& subscription) REQUIRES(link_mutex_);
  Result<Coming> look(ClientSubscription& subscription, const Deadline& deadline)
      REQUIRES(link_mutex_);
  bool await_news(ClientSubscription& subscription, const Deadline& deadline, bool& asked)
      REQUIRES(link_mutex_);
  Result<wire::UpcomingBatch> figures_of(const Ticket& ticket, const Deadline& deadline)
      REQUIRES(link_mutex_);
  void say_waiting(const ClientSubscription& subscription) REQUIRES(link_mutex_);
  void ask(const ClientSubscription& subscription, bool quiet) REQUIRES(link_mutex_);
  void let_wait(const ClientSubscription& subscription, std::size_t releases) REQUIRES(link_mutex_);
  Result<std::unique_ptr<bw_batch>> hand_out(
      const std::shared_ptr<ClientSubscription>& subscription, const Deadline& deadline)
      REQUIRES(link_mutex_);

  // versions.cpp: what a trainer of a live feed says
  Result<void> await_live(const Deadline& deadline) REQUIRES(link_mutex_);
  template <class TableT>
  Result<wire::VersionT> ask_version(TableT& what, const Deadline& deadline);
  Error no_version(const Deadline& deadline) const REQUIRES(link_mutex_);

  // dispatch.cpp: what is said to the daemon, and what it says
  Result<void> greet();
  bool pump_until(const std::function<bool()>& done, const Deadline& deadline)
      REQUIRES(link_mutex_);
  void pump(const Deadline& deadline) REQUIRES(link_mutex_);
  void dispatch(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  Result<void> on_welcome(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  Result<void> on_delivery(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  Result<void> on_refused(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  Result<void> on_version(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  Result<void> on_bye(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  template <class Table>
  Result<void> on_news(const DaemonSocket::Incoming& incoming) REQUIRES(link_mutex_);
  ClientSubscription* find(std::uint32_t number) const REQUIRES(link_mutex_);
  void refused(ClientSubscription& subscription, const Error& error) REQUIRES(link_mutex_);
  void arrive(const Deadline& deadline) REQUIRES(link_mutex_);
  void request(ClientSubscription& subscription) REQUIRES(link_mutex_);
  void arena_trouble(const Error& error) REQUIRES(link_mutex_);
  void lose(const std::string& how) REQUIRES(link_mutex_);
  void lost() REQUIRES(link_mutex_);
  void fail(const Error& error) REQUIRES(link_mutex_);
  Leases::Connection state_of_connection() const REQUIRES(link_mutex_);
  bool send_outboxes() REQUIRES(link_mutex_);
  void send_outbox(ClientSubscription& subscription, const Leases::Outbox& outbox)
      REQUIRES(link_mutex_);
  void send_outboxes_if_free();
  void send(const flatbuffers::DetachedBuffer& message) REQUIRES(link_mutex_);

  Mutex turn_mutex_;  ///< Locked by the thread that has the turn; no other waits for it.
  std::atomic<bool> closed_ = false;  ///< By the program, or by a failure.
  std::atomic<bool> untold_ = false;  ///< Something that the holder of the link is to send.
  Mutex link_mutex_;
  DaemonLink link_;  ///< Guarded as well, except for what it says to any thread.
  std::map<SubscriptionNumber, std::shared_ptr<ClientSubscription>> subscriptions_
      GUARDED_BY(link_mutex_);
  SubscriptionNumber last_number_ GUARDED_BY(link_mutex_);
  std::uint32_t version_question_ GUARDED_BY(link_mutex_) = 0;  ///< The last one.
  std::optional<wire::VersionT> version_answer_ GUARDED_BY(link_mutex_);
  bool said_goodbye_ GUARDED_BY(link_mutex_) = false;
  std::optional<Error> failure_ GUARDED_BY(link_mutex_);  ///< Why the conversation is over.
};

}  // namespace batchwright
