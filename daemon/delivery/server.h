#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/conduct.h"
#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/late_answers.h"
#include "daemon/delivery/waiting_room.h"
#include "daemon/delivery/wire/wire.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// The server's addresses and its rules of access.
struct ServerSettings {
  std::vector<std::string> endpoints;  ///< `ipc://` and a path, `tcp://` and a numeric address.
  std::string events;                  ///< An address for events; empty: none are published.
  std::string version;                 ///< The version sent to clients.
  unsigned assembly_threads = 2;
  std::uint32_t max_clients = 256;
  SocketAccess access;  ///< Access to the sockets' files.
  AllowList allowed;    ///< Users and groups allowed over `ipc://`.
  ServerKeys keys;      ///< Keys of `tcp://`.
  /// A client that does not connect to the arena socket within this time is dropped, and so is a
  /// connection that does not name its session.
  std::chrono::milliseconds bind_time{10'000};
  /// How long a client waits for a feed that is absent before it is refused; 0: it does not wait,
  /// and a feed that fails stays where it is until put_away_failed().
  std::chrono::milliseconds feed_grace{0};
};

/// One connected client. Owned by the server, on the event loop.
struct Session {
  ClientInfo client;
  PeerName peer;
  std::optional<PeerCredentials> user;  ///< The user of an `ipc://` peer.
  bool bound = false;                   ///< Has its connection to the arena socket.
  bool lost = false;                    ///< That connection has ended, and the process with it.
  bool returning = false;               ///< Its client has said Hello anew.
  bool leaving = false;                 ///< Said Bye, and so holds nothing and does not come back.

  SessionId id() const { return client.session; }
  /// The effect of its end on the batches it holds.
  Departure departure() const {
    // A connection over a network ends for many reasons; the arena socket's only with the client.
    return {returning || (client.inline_batches && !leaving), bound && !lost && !leaving};
  }
};

/// The sessions, and the conversation with each (formats/README.md).
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
  /// Replaces the feed with this name. Its subscriptions are refused with `disconnected` and the
  /// reason: their clients subscribe anew, from where they are. What clients hold stays readable.
  Feed& replace_feed(FeedSettings settings, FeedResources resources, const std::string& why);
  /// Removes a feed: its subscriptions are refused with `not_found` and its name.
  void remove_feed(std::string_view name);
  /// The feed with this name; null when there is none.
  Feed* find_feed(std::string_view name);
  /// Adds a feed that cannot be served for now, or updates the reason. Its clients wait, where the
  /// reason is_passing(); add_feed() ends that.
  void set_absent(AbsentFeed feed);
  const std::vector<AbsentFeed>& absent() const { return absent_; }
  /// Feeds that have failed for a reason that is_passing() become absent, and give back their
  /// arenas. Not from within a call of a feed.
  void put_away_failed();
  void set_feed_grace(std::chrono::milliseconds grace) { settings_.feed_grace = grace; }
  /// Feed numbers that are left: none is used twice, for clients know arenas by them.
  std::uint32_t feed_numbers_left() const { return ArenaNumber::kMostFeeds - last_feed_; }
  /// Changes the rules of access for new clients; connected ones stay.
  void set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized);

  /// Binds the endpoints and their arena sockets, and starts every feed.
  /// Errors: io_error, already_exists (another daemon answers there).
  Result<void> listen();

  /// Tells every client Bye. Batches they hold stay readable, for a mapping outlives the daemon.
  void say_goodbye();

  /// Sets the memory left for arenas that grow. Call it before listen().
  MemoryBudget& memory() { return *memory_; }
  const MemoryBudget& memory() const { return *memory_; }
  std::shared_ptr<MemoryBudget> share_memory() { return memory_; }

  /// The planning thread, for work that may wait until the feeds' plans are made.
  Planner& planner() { return planner_; }

  const std::vector<std::unique_ptr<Feed>>& feeds() const { return feeds_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  /// The log of events, which the server's users share.
  EventLog& log() { return log_; }
  const EventLog& log() const { return log_; }
  unsigned assembly_threads() const { return settings_.assembly_threads; }
  /// The addresses it listens at, with the actual ports for port 0.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  const std::string& events_endpoint() const { return events_endpoint_; }

  /// The period of Alive messages to clients without an arena.
  static constexpr std::chrono::seconds kAlive{1};
  /// How long after its connection's end the last messages of a queue's client are taken.
  static constexpr std::chrono::milliseconds kLastWords{1000};

 private:
  void on_message(const Router::Incoming& incoming);
  void on_hello(const Router::Incoming& incoming, const wire::Hello& hello);
  void on_session_message(Session& session, const ControlMessage& message);
  void on_subscribe(const Session& session, const wire::Subscribe& request);
  Result<void> subscribe(const Session& session, const wire::Subscribe& request);
  void refuse_subscription(const Session& session, std::uint32_t subscription, const Error& error);
  void answer_late();
  void on_malformed(const PeerName& peer, const std::string& what);

  Result<void> admit(const Router::Incoming& incoming, const wire::Hello& hello) const;
  Result<void> replace_earlier(const Router::Incoming& incoming, std::uint64_t token);
  void turn_away(const PeerName& peer, const Error& error);
  bool bears_refusal(const PeerName& peer);
  void stop_listening_to(const PeerName& peer);
  Conduct& conduct(const PeerName& peer);
  void welcome(const Session& session);
  void joined(const Session& session);
  void left(const Session& session);
  void say_alive();
  void publish(wire::EventT event);
  bool bind_session(SessionId id);
  void on_lost(SessionId id);
  void close_session(SessionId id, const std::string& why);
  void drop_unbound(SessionId id);
  Session* find(const PeerName& peer);
  Result<ArenaHandle> find_arena(ArenaNumber number) const;
  // server_feeds.cpp
  std::unique_ptr<Feed> make_feed(ArenaNumber number, FeedSettings settings,
                                  FeedResources resources);
  void retire(std::unique_ptr<Feed> feed, const Error& error);
  void free_retired();
  // server_absent.cpp
  const AbsentFeed* find_absent(std::string_view name) const;
  bool put_away_soon();
  void ask_of_absent(const SubscriptionKey& key, bool quiet);
  Result<void> await_feed(const Session& session, const wire::Subscribe& request,
                          const AbsentFeed& feed);
  void tell_reason(SessionId session, std::uint32_t subscription, const Error& why);
  void look_at_waiting();
  void serve_guests(Feed& feed);
  void refuse_guests(std::string_view feed, const Error& why);
  void refuse_guest(const WaitingRoom::Guest& guest, const Error& why);
  // server_sockets.cpp
  Result<void> listen_local(const std::string& endpoint);
  Result<void> listen_remote(const std::string& endpoint);
  Result<void> listen_for_events();
  Result<void> open_gate();
  Router& router(const PeerName& peer) { return peer.remote ? *remote_router_ : *local_router_; }
  bool has_allow_list() const { return settings_.keys.authorized.has_value(); }

  void send(const PeerName& peer, const flatbuffers::DetachedBuffer& message);
  void send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch);
  void unreachable(const PeerName& peer, const Error& error);
  void send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message);
  void refuse(const PeerName& peer, const Error& error, std::uint32_t subscription = 0);

  boost::asio::io_context& loop_;
  ServerSettings settings_;
  EventLog log_;
  std::shared_ptr<MemoryBudget> memory_ = std::make_shared<MemoryBudget>();
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<std::unique_ptr<Feed>>
      retired_;  ///< Feeds kept until no other thread works for them.
  std::vector<AbsentFeed> absent_;
  WaitingRoom waiting_room_;  ///< Requests of clients that wait for absent feeds.
  std::uint32_t last_feed_ = 0;
  bool listening_ = false;
  Planner planner_;
  Assembler assembler_;
  Readahead readahead_;
  std::map<SessionId, Session> sessions_;
  std::map<PeerName, SessionId> by_peer_;
  std::map<PeerName, Conduct> conduct_;  ///< Offences by peer.
  LateAnswers late_answers_;
  boost::asio::steady_timer late_timer_;
  std::map<SessionId, std::unique_ptr<boost::asio::steady_timer>> bind_timers_;
  boost::asio::steady_timer alive_timer_;
  bool saying_alive_ = false;
  boost::asio::steady_timer retired_timer_;
  boost::asio::steady_timer waiting_timer_;
  bool looking_at_waiting_ = false;
  std::vector<std::string> endpoints_;
  std::string arena_path_;  ///< The path for the first `ipc://` endpoint; empty: there is none.
  std::string events_endpoint_;
  AcceptGuard accept_guard_;
  SocketThreads socket_threads_;
  std::unique_ptr<Gatekeeper> gatekeeper_;
  std::unique_ptr<Router> local_router_;
  std::unique_ptr<Router> remote_router_;
  std::unique_ptr<EventPublisher> events_;
  std::vector<std::unique_ptr<ArenaSocket>> arena_sockets_;
};

}  // namespace batchwright
