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

#include "daemon/delivery/arena_socket.h"
#include "daemon/delivery/feed.h"
#include "daemon/delivery/router.h"
#include "formats/formats.h"

namespace batchwright {

/// Where clients find the daemon, and how many it takes.
struct ServerSettings {
  std::vector<std::string> endpoints;  ///< `ipc://` paths.
  std::string version;                 ///< Told to clients.
  unsigned assembly_threads = 2;
  std::uint32_t max_clients = 256;
  unsigned socket_mode = 0660;         ///< Of the endpoints' sockets.
  std::optional<unsigned> socket_gid;  ///< Their group; empty: as the daemon's.
};

/// One connected client. Owned by the server, on the event loop.
struct Session {
  ClientInfo client;
  PeerName peer;
  bool bound = false;    ///< Has its connection to the arena socket.
  bool leaving = false;  ///< Said Bye, and so does not come back.

  SessionId id() const { return client.session; }
};

/// Sessions, and the conversation with each (formats/README.md): who may say what, and when.
///
/// Threads: construction and destruction on the thread that runs the loop; all else on the loop.
/// Destroyed in the reverse order of its members: the sockets go first, then the threads are
/// joined, then the feeds and with them the arenas.
class Server {
 public:
  Server(boost::asio::io_context& loop, ServerSettings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Takes up a prepared feed. Before listen().
  void add_feed(FeedSettings settings, FeedResources resources);

  /// Binds the endpoints and their arena sockets, and starts every feed.
  /// Errors: io_error, already_exists (another daemon answers there).
  Result<void> listen();

  /// Tells every client Bye. Batches they hold stay readable, for a mapping outlives the daemon.
  void say_goodbye();

  /// What is left for arenas that grow. Before listen().
  MemoryBudget& memory() { return *memory_; }

  const std::vector<std::unique_ptr<Feed>>& feeds() const { return feeds_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  std::uint64_t malformed_messages() const { return malformed_messages_; }

  /// A session that does not connect to the arena socket within this time is dropped.
  static constexpr std::chrono::seconds kBindTime{10};

 private:
  void on_message(const PeerName& peer, std::span<const std::byte> frame, std::size_t frames);
  void on_hello(const PeerName& peer, const wire::Hello& hello);
  void on_session_message(Session& session, const ControlMessage& message);
  void on_subscribe(const Session& session, const wire::Subscribe& request);
  void on_malformed(const PeerName& peer, const std::string& what);

  void welcome(const Session& session);
  bool bind_session(SessionId id);
  void close_session(SessionId id, const std::string& why);
  void drop_unbound(SessionId id);
  Session* find(const PeerName& peer);
  Feed* find_feed(std::string_view name);
  Result<ArenaHandle> find_arena(std::uint32_t number) const;
  Result<void> listen_at(const std::string& endpoint);

  void send(const PeerName& peer, const flatbuffers::DetachedBuffer& message);
  void send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch);
  void unreachable(const PeerName& peer, const Error& error);
  void send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message);
  void refuse(const PeerName& peer, const Error& error, std::uint32_t subscription = 0);

  boost::asio::io_context& loop_;
  ServerSettings settings_;
  std::shared_ptr<MemoryBudget> memory_ = std::make_shared<MemoryBudget>();
  std::vector<std::unique_ptr<Feed>> feeds_;
  Planner planner_;
  Assembler assembler_;
  Readahead readahead_;
  std::map<SessionId, Session> sessions_;
  std::map<PeerName, SessionId> by_peer_;
  std::map<PeerName, std::uint32_t> offences_;  ///< Malformed messages, per peer.
  std::map<SessionId, std::unique_ptr<boost::asio::steady_timer>> bind_timers_;
  std::uint64_t malformed_messages_ = 0;
  std::unique_ptr<Router> router_;
  std::vector<std::unique_ptr<ArenaSocket>> arena_sockets_;
};

}  // namespace batchwright
