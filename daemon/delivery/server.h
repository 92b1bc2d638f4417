#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/delayed_replies.h"
#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/feed_registry.h"
#include "daemon/delivery/peer_limiter.h"
#include "daemon/delivery/repeating_timer.h"
#include "daemon/delivery/session_table.h"
#include "daemon/delivery/unavailable_feeds.h"
#include "daemon/delivery/wire/wire.h"
#include "daemon/delivery/work_threads.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// The server's addresses, its rules of access, and what it does with clients.
struct ServerSettings : ListenerSettings {
  std::string version;  ///< The version sent to clients.
  unsigned assembly_threads = 2;
  std::string assembly_copy{plain_copy().name};  ///< The way to copy, as Assembler takes it.
  ThreadPolicy policy;                           ///< Of the threads that assemble and read ahead.
  /// How long a client waits for a feed that is absent before it is refused; 0: it does not wait,
  /// and a feed that fails stays where it is until put_away_failed().
  std::chrono::milliseconds feed_grace{0};
};

/// The conversation with each client (formats/PROTOCOL.md). It joins the objects that know sockets,
/// sessions and feeds (README.md): it tells them what happened, and carries out what they decide.
///
/// Threads: construction and destruction on the thread that runs the loop; all else on the loop.
/// Destroyed in the reverse order of its members: the sockets go first, then ZeroMQ's threads,
/// which may be sending out of a slot, then ours are joined, then the feeds and with them the
/// arenas.
class Server {
 public:
  Server(boost::asio::io_context& loop, ServerSettings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Adds a prepared feed, and starts it if listen() was called. Its arena's bytes are taken from
  /// memory() already, or will be left out of it by set_left().
  Feed& add_feed(FeedSettings settings, FeedResources resources);
  /// Lists feeds in the order of these names.
  void arrange(const std::vector<std::string>& names) { feeds_.arrange(names); }
  /// Replaces the feed with this name. Its subscriptions are refused with `disconnected` and the
  /// reason: their clients subscribe again, from where they are. What clients hold stays readable.
  Feed& replace_feed(FeedSettings settings, FeedResources resources, const std::string& why);
  /// Removes a feed: its subscriptions are refused with `not_found` and its name.
  void remove_feed(std::string_view name);
  /// The feed with this name; null when there is none.
  Feed* find_feed(std::string_view name) { return feeds_.find(name); }
  /// Adds a feed that cannot be served for now, or updates the reason. Its clients wait, where the
  /// reason is_transient(); add_feed() ends that.
  void set_absent(UnavailableFeed feed) { unavailable_.set(std::move(feed)); }
  const std::vector<UnavailableFeed>& absent() const { return unavailable_.all(); }
  /// Feeds that have failed for a reason that is_transient() become absent, and give back their
  /// arenas. Not from within a call of a feed.
  void put_away_failed();
  /// The feed with this name, if there is one, becomes absent, for a reason that is_transient().
  void put_away(std::string_view name, const Error& why);
  void set_feed_grace(std::chrono::milliseconds grace) { unavailable_.set_grace(grace); }
  /// Feed numbers that are left: none is used twice, for clients know arenas by them.
  std::uint32_t feed_numbers_left() const { return feeds_.numbers_left(); }
  /// Changes the rules of access for new clients; connected ones stay.
  void set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized);

  /// Binds the endpoints and their arena sockets, and starts every feed.
  /// Errors: io_error, already_exists (another daemon answers there).
  Result<void> listen();

  /// Tells every client Bye. Batches they hold stay readable, for a mapping outlives the daemon.
  void say_goodbye();

  /// Sets the memory left for arenas that grow. Call it before listen().
  MemoryBudget& memory() { return *memory_; }
  std::shared_ptr<MemoryBudget> share_memory() { return memory_; }

  /// The planner's thread, for work that may wait until the feeds' plans are made.
  Planner& planner() { return works_.planner(); }

  const std::vector<std::unique_ptr<Feed>>& feeds() const { return feeds_.all(); }
  /// All that is shown of it and its feeds, without the figures of the last seconds.
  ServerStatus status(WaitingTimes::Time now, Detail detail = Detail::all) const;
  /// The log of events, which the server's users share.
  EventLog& log() { return log_; }
  const EventLog& log() const { return log_; }
  /// The addresses it listens at, with the actual ports for port 0.
  const std::vector<std::string>& endpoints() const { return listeners_.endpoints(); }
  const std::string& events_endpoint() const { return listeners_.events_endpoint(); }

  /// Whether a client's message of this kind has a handler.
  static bool handles(wire::Body kind) { return handler_of(kind) != nullptr; }

  /// The period of Alive messages to clients without an arena.
  static constexpr std::chrono::seconds kAlive{1};
  /// How long after its connection's end the last messages of a queue's client are taken.
  static constexpr std::chrono::milliseconds kLastWords{1000};

 private:
  /// The settings that count while it runs.
  struct Rules {
    std::string version;
    unsigned assembly_threads;
    std::uint32_t max_clients;
    std::uint32_t max_producers;
    std::chrono::milliseconds bind_time;
    std::chrono::milliseconds silence;
  };

  /// A client's message, as it came.
  struct Received {
    const Router::Incoming& incoming;
    const ControlMessage& message;
    Session* session;  ///< Of its sender; null before Hello.
  };
  /// How a kind of message is taken.
  struct Handler {
    wire::Body kind;
    bool in_session;  ///< Not without a session.
    void (Server::*handle)(const Received&);
  };
  static const Handler kHandlers[];

  // server_conversation.cpp: the messages of clients, and the answers to them.
  void on_message(const Router::Incoming& incoming);
  static const Handler* handler_of(wire::Body kind);
  void on_hello(const Received& received);
  void on_release(const Received& received);
  void on_unsubscribe(const Received& received);
  void on_ask(const Received& received);
  void on_subscribe(const Received& received);
  void on_bye(const Received& received);
  void on_list_upcoming(const Received& received);

  // server_live.cpp: the messages of producers, and of trainers to live feeds.
  void on_produce(const Received& received);
  void on_push(const Received& received);
  template <class Table>
  void on_producer(const Received& received);
  template <class Table>
  void on_version(const Received& received);
  void on_end_feed(const Received& received);
  void on_keep_from(const Received& received);
  Feed* live_feed(const Received& received, const flatbuffers::String* name, Error& why);
  Feed* feed_of_producer(const Received& received, std::uint32_t producer);
  void refuse_producer(const Received& received, std::uint32_t producer, const Error& error);

  void on_malformed(const PeerName& peer, const std::string& what);
  Result<void> check_room(bool produces) const;
  Result<void> admit(const Router::Incoming& incoming, const wire::Hello& hello) const;
  Result<void> replace_earlier(const Router::Incoming& incoming, std::uint64_t token);
  void welcome(const Session& session);
  Result<void> subscribe(const Session& session, const wire::Subscribe& request);
  Result<void> await_feed(const Session& session, const wire::Subscribe& request,
                          const UnavailableFeed& feed);
  void refuse_subscription(const Session& session, SubscriptionNumber subscription,
                           const Error& error);
  void turn_away(const PeerName& peer, const Error& error);
  bool bears_refusal(const PeerName& peer);
  void stop_listening_to(const PeerName& peer);

  // server_sessions.cpp: how clients come and go, and what is sent to them.
  void joined(const Session& session);
  void left(const Session& session);
  bool say_alive();
  void end_lost();
  bool bind_session(SessionId id);
  void on_lost(SessionId id);
  void close_session(SessionId id, const std::string& why);
  void send(const PeerName& peer, const flatbuffers::DetachedBuffer& message);
  void send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message);
  void send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch);
  void unreachable(const PeerName& peer, const Error& error);
  /// Of a subscription, of a producer, or, without either number, of the session.
  void refuse(const PeerName& peer, const Error& error, SubscriptionNumber subscription = {},
              std::uint32_t producer = 0);
  void tell_reason(const SubscriptionKey& key, const Error& why);

  // server_feeds.cpp: the set of feeds.
  std::unique_ptr<Feed> make_feed(ArenaNumber number, FeedSettings settings,
                                  FeedResources resources);
  Result<std::shared_ptr<const StoredRows>> rows_of(const std::string& name, const Fingerprint& of);
  void put_away(const FeedStatus& feed, const Error& why, const Error& told);
  ArenaNumber number_after(ArenaNumber number);
  bool put_away_soon();
  void serve_pending(Feed& feed, UnavailableFeeds::Pending pending);
  void refuse_pending(const UnavailableFeeds::Pending& pending, const Error& why);
  Result<ArenaHandle> find_arena(SessionId session, ArenaNumber number) const;
  Listeners::Calls calls_of_listeners();

  boost::asio::io_context& loop_;
  const Rules rules_;
  EventLog log_;
  std::shared_ptr<MemoryBudget> memory_ = std::make_shared<MemoryBudget>();
  /// Frees what feeds leave behind: arenas take long, datasets may wait for their file system.
  HelperThread freeing_{"bw-free"};
  FeedRegistry feeds_;
  UnavailableFeeds unavailable_;
  WorkThreads works_;
  SessionTable sessions_;
  PeerLimiters conduct_;
  DelayedReplies late_answers_;
  RepeatingTimer alive_;  ///< While there are clients without an arena.
  Listeners listeners_;
};

}  // namespace batchwright
