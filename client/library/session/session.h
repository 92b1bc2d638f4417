#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/link/contact.h"
#include "client/library/memory/batch.h"
#include "client/library/session/lane.h"
#include "client/library/session/lanes.h"
#include "client/library/session/lease_book.h"
#include "client/library/settings.h"

namespace batchwright {

/// One conversation with one daemon: what a program asks of it, over a link that Contact keeps. It
/// outlives the daemon: when that is gone it is looked for, greeted anew, and asked to go on where
/// the program is.
///
/// Two things are guarded. The *turn* belongs to the one thread that is in subscribe() or next(); a
/// second one gets an error. The *link* is locked by the thread that has the turn, and otherwise
/// for the moment it takes to send the lease book's news: a release finds it free and sends at
/// once, or finds it taken and wakes its holder, which sends it.
///
/// Lifetime: connection, subscriptions and held batches share it. The conversation ends by
///   close(), or by a failure; towards the daemon it ends once no batch is held, for then the
///   daemon takes its slots back.
/// Threads: as each method says.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// A batch, the end of an epoch, or neither: nothing follows.
  struct Event {
    std::unique_ptr<bw_batch> batch;
    std::optional<EpochEnded> ended;
  };
  enum class Coming { rehearsal, batch, epoch_end, nothing };

  /// Errors: as bw_connect() says.
  static Result<std::shared_ptr<Session>> connect(const std::string& endpoint,
                                                  ConnectSettings settings);

  Session(std::string endpoint, ConnectSettings settings)
      : contact_(std::move(endpoint), std::move(settings)) {}

  // What Contact says of itself, for any thread.
  const std::string& endpoint() const { return contact_.endpoint(); }
  const Feeds& feeds() const { return contact_.feeds(); }
  bool forked() const { return contact_.forked(); }
  bool is_inline() const { return contact_.is_inline(); }
  const std::string& inline_reason() const { return contact_.inline_reason(); }
  std::uint64_t reconnects() const { return contact_.reconnects(); }

  /// Chooses the subscription's number. Errors: as bw_subscribe() says. Threads: the turn.
  Result<std::shared_ptr<Lane>> subscribe(wire::SubscribeT request, bool writable = false);

  /// Errors: as bw_next() says. Threads: the turn.
  Result<Event> next(const std::shared_ptr<Lane>& lane, const Deadline& deadline);
  /// The event that next() would return, without taking it. Errors: the same.
  Result<Coming> peek(const std::shared_ptr<Lane>& lane, const Deadline& deadline);

  /// Threads: any, at any time. They do not wait for what another thread waits for.
  void give_back(const Lease& lease);
  /// Gives a queue's batch back undone, for another worker.
  void give_back_undone(const Lease& lease);
  /// Marks a queue's batch as done while it is still held.
  void done(const Lease& lease);
  void unsubscribe(const Lane& lane);
  void close();

 private:
  class Turn;

  // session.cpp: what the program asks for
  Result<std::shared_ptr<Lane>> await_grant(const std::shared_ptr<Lane>& lane);
  Result<Lane::Next> look(Lane& lane, const Deadline& deadline);
  bool await_news(Lane& lane, const Deadline& deadline, bool& asked);
  void say_waiting(const Lane& lane);
  void ask(const Lane& lane, bool quiet);
  Result<std::optional<Event>> hand_out(Lane& lane, NextBatch next, const Deadline& deadline);
  void spread_news();

  // conversation.cpp: what is said to the daemon, and what it says
  Result<void> greet();
  bool pump_until(const std::function<bool()>& done, const Deadline& deadline);
  void pump(const Deadline& deadline);
  void receive();
  void dispatch(const ControlMessage& message, const Payload& batch);
  void refused(const wire::Refused& refusal);
  void refused(Lane& lane, const Error& error);
  void arrive(const Deadline& deadline);
  void request(wire::SubscribeT wanted);
  void arena_trouble(const Error& error);
  void lose(const std::string& how);
  void fail(const Error& error);
  bool tell_news();
  void tell_news_if_free();
  void send(const flatbuffers::DetachedBuffer& message);

  // trouble.cpp: what is said when something does not come
  Error no_grant(const Lane& lane) const;
  Error nothing_came(const Lane& lane, const Deadline& deadline, bool asked) const;

  LeaseBook book_;
  std::mutex turn_mutex_;  ///< Locked by the thread that has the turn; no other waits for it.
  std::mutex link_mutex_;  ///< Guards what follows, except for what Contact says to any thread.
  Contact contact_;
  Lanes lanes_{book_};
  std::optional<Error> failure_;  ///< Why the conversation is over.
};

}  // namespace batchwright
