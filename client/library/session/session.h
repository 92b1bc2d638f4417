#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/dealer.h"
#include "client/library/memory/arenas.h"
#include "client/library/memory/batch.h"
#include "client/library/session/feeds.h"
#include "client/library/session/lane.h"
#include "client/library/session/lease_book.h"
#include "client/library/settings.h"

namespace batchwright {

/// All that ties us to one daemon, from the first attempt to greet it.
struct Link {
  using Clock = Deadline::Clock;

  SessionId session;
  bool welcomed = false;
  bool shares_memory = false;
  bool up = false;                 ///< Greeted, and asked for each subscription.
  std::unique_ptr<Arenas> arenas;  ///< Null until it is up, and without an arena.
  std::unique_ptr<Dealer> dealer;  ///< Closed first, so that Bye precedes the connection's end.
  Clock::time_point heard{};       ///< Time of the last message.
  std::optional<Clock::time_point> suspected;  ///< Start of a closer watch.
};

/// One conversation with one daemon: sockets, arenas, subscriptions. It outlives the daemon: when
/// that is gone it is looked for, greeted anew, and asked to go on where the program is.
///
/// Two things are guarded. The *turn* belongs to the one thread that is in subscribe() or next(); a
/// second one gets an error. The *socket* is locked by the thread that has the turn, and otherwise
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

  Session(std::string endpoint, ConnectSettings settings);

  const std::string& endpoint() const { return endpoint_; }
  /// The feeds of the first daemon that was met.
  const Feeds& feeds() const { return *feeds_; }
  /// Whether this is a forked child's copy, which touches nothing.
  bool forked() const;

  /// Whether batches come as messages, why, and how often a lost daemon was found again.
  /// Threads: any. The text stays where it is.
  bool is_inline() const { return inline_.load(std::memory_order_acquire); }
  const std::string& inline_reason() const { return inline_reason_; }
  std::uint64_t reconnects() const { return reconnects_.load(std::memory_order_relaxed); }

  /// Chooses the subscription's number. Errors: as bw_subscribe() says. Threads: the turn.
  Result<std::shared_ptr<Lane>> subscribe(wire::SubscribeT request, bool writable = false);

  /// Errors: as bw_next() says. Threads: the turn.
  Result<Event> next(const std::shared_ptr<Lane>& lane, const Deadline& deadline);
  /// The event that next() would return, without taking it. Errors: the same.
  Result<Coming> peek(const std::shared_ptr<Lane>& lane, const Deadline& deadline);

  /// Threads: any, at any time. They do not wait for what another thread waits for.
  void give_back(const Lease& lease);
  /// Marks a queue's batch as done while it is still held.
  void done(const Lease& lease);
  void unsubscribe(std::uint32_t subscription);
  void close();

 private:
  class Turn;
  using Clock = Deadline::Clock;

  /// A daemon that was there and is not.
  struct Away {
    Clock::time_point since;
    std::string why;
  };

  // session.cpp: what the program asks for
  Result<std::shared_ptr<Lane>> await_grant(const std::shared_ptr<Lane>& lane);
  Result<Lane::Next> look(Lane& lane, const Deadline& deadline);
  bool await_news(Lane& lane, const Deadline& deadline, bool& asked);
  void say_waiting(const Lane& lane);
  Result<std::optional<Event>> hand_out(Lane& lane, NextBatch next);
  Result<std::shared_ptr<const Mapping>> arena(std::uint32_t number);
  bool tell_news();
  void tell_news_if_free();
  void wake_holder() const;
  void send(const flatbuffers::DetachedBuffer& message);
  void fail(const Error& error);
  Error end(Lane& lane, const Error& error);

  // conversation.cpp: what the daemon says
  bool pump_until(const std::function<bool()>& done, const Deadline& deadline);
  void pump(const Deadline& deadline);
  void receive();
  void wait(const Deadline& deadline);
  void dispatch(const ControlMessage& message, const Payload& batch);
  void on_subscription(const ControlMessage& message);
  Result<void> welcomed(const wire::Welcome& welcome);
  void subscribed(const wire::Subscribed& answer);
  void deliver(const wire::Delivery& delivery, const Payload& batch);
  void refused(const wire::Refused& refusal);
  void refused(Lane& lane, const Error& error);
  Lane* find(std::uint32_t subscription);

  // arrival.cpp: how a daemon is met, lost, and met again
  Result<void> greet();
  void tend();
  void tend_silence();
  std::chrono::milliseconds until_next_chore() const;
  void begin_attempt();
  void arrive(const Deadline& deadline);
  void ask_for(Lane& lane);
  void arena_trouble(const Error& error);
  void go_inline(const std::string& why);
  void lose(const std::string& how);
  void drop_link();

  // trouble.cpp: texts
  Error no_welcome() const;
  Error no_grant(const Lane& lane) const;
  Error nothing_came(const Lane& lane, const Deadline& deadline, bool asked) const;
  Error daemon_gone(const std::string& how) const;
  std::string away_text() const;
  std::string about_keys() const;

  const std::string endpoint_;
  const ConnectSettings settings_;
  const pid_t pid_;
  const std::uint64_t token_;  ///< Lets a daemon recognise this client when it reconnects.
  const Descriptor alarm_;     ///< An eventfd that wakes the thread waiting on the socket.
  LeaseBook book_;
  std::atomic<bool> turn_taken_ = false;
  std::atomic<bool> inline_ = false;  ///< Once true it stays so.
  std::string inline_reason_;         ///< Written before inline_ is.
  std::atomic<std::uint64_t> reconnects_ = 0;

  std::mutex socket_;
  // What follows needs the socket locked, except for feeds_, which connect() makes.
  std::optional<Link> link_;  ///< Empty between two attempts, and once goodbye is said.
  std::unique_ptr<const Feeds> feeds_;
  std::map<std::uint32_t, std::shared_ptr<Lane>> lanes_;
  std::uint32_t last_number_ = 0;
  std::optional<Error> failure_;  ///< Why the conversation is over.
  bool was_up_ = false;           ///< Some daemon was met.
  std::optional<Away> away_;
  Clock::time_point next_attempt_{};
};

}  // namespace batchwright
