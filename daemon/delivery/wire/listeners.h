#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/wire/accept_guard.h"
#include "daemon/delivery/wire/access.h"
#include "daemon/delivery/wire/arena_socket.h"
#include "daemon/delivery/wire/curve.h"
#include "daemon/delivery/wire/event_publisher.h"
#include "daemon/delivery/wire/frame_socket.h"
#include "daemon/delivery/wire/router.h"
#include "daemon/delivery/wire/zap_authenticator.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// The addresses to listen at, and the rules of access there.
struct ListenerSettings {
  std::vector<std::string> endpoints;  ///< `ipc://` and a path, `tcp://` and a numeric address.
  std::string events;                  ///< An address for events; empty: none are published.
  std::uint32_t max_clients = 256;
  std::uint32_t max_producers = 1024;  ///< Beside them.
  /// A client that does not connect to the arena socket within this time is dropped, and so is a
  /// connection that does not name its session.
  std::chrono::milliseconds bind_time{10'000};
  /// A remote client that gives no sign of life for so long is lost, and so is one that nothing of
  /// what is sent to it leaves for (pulse.h).
  std::chrono::milliseconds silence{10'000};
  SocketAccess access;  ///< Access to the sockets' files.
  AllowList allowed;    ///< Users and groups allowed over `ipc://`.
  ServerKeys keys;      ///< Keys of `tcp://`.
};

/// All sockets for clients: a ROUTER for each kind of endpoint, an arena socket beside each
/// `ipc://` endpoint, and the one that events are published on.
///
/// Lifetime: destroyed before the memory that payloads lie in. The sockets go first, then ZeroMQ's
///   threads, which may be sending out of that memory.
/// Threads: the event loop; construction, open() and destruction on the thread that runs it.
class Listeners {
 public:
  struct Calls {
    Router::OnMessage message;
    /// What arena sockets ask and tell, except for `admit`, which the list of
    /// users decides, and `delayed`, which is logged.
    ArenaSocket::Callbacks arena;
  };

  Listeners(boost::asio::io_context& loop, EventLog& log, ListenerSettings settings, Calls calls);

  /// Binds all addresses, in their order. Errors: io_error, already_exists (another daemon answers
  /// there), invalid_argument (neither `ipc://` nor `tcp://`).
  Result<void> open();

  /// Queues a message for a peer, and never waits. Errors: those of Router::send().
  Result<void> send(const PeerName& peer, const flatbuffers::DetachedBuffer& message);
  /// Queues a message with a batch behind it.
  Result<void> send(const PeerName& peer, const flatbuffers::DetachedBuffer& ticket, Payload batch);
  /// Tells all that listen; without an address for events nothing happens.
  void publish(wire::EventT event);

  /// The session is over, and nothing is held over its arena connection: ends that.
  void disconnect(SessionId session);
  /// The session is over, and its process may still read what it holds: see ArenaSocket::retire().
  void retire(SessionId session);

  /// Users and groups that may connect over `ipc://`.
  const AllowList& allowed() const { return settings_.allowed; }
  /// Changes who may connect; those that are connected stay. Keys count only where there was a list
  /// of them from the start.
  void set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized);

  /// The addresses it listens at, with the actual ports for port 0.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  const std::string& events_endpoint() const { return events_endpoint_; }
  /// What a client connects to for arenas; empty for a remote one.
  std::string arena_path_for(const PeerName& peer) const;
  /// What a client connects to for events; empty where there is nothing within its reach.
  std::string events_for(const PeerName& peer) const;

 private:
  Result<void> open_gate();
  Result<void> listen_local(const std::string& endpoint);
  Result<void> claim(const std::string& path);
  Result<void> listen_arena(const std::string& path);
  Result<void> listen_remote(const std::string& endpoint);
  Result<void> listen_for_events();
  void note_remote(const std::string& endpoint, const std::string& public_key);
  Router& router(const PeerName& peer) { return peer.remote ? *remote_router_ : *local_router_; }
  bool has_key_list() const { return settings_.keys.authorized.has_value(); }

  boost::asio::io_context& loop_;
  EventLog& log_;
  ListenerSettings settings_;
  Calls calls_;
  std::vector<std::string> endpoints_;
  std::string arena_path_;  ///< The path for the first `ipc://` endpoint; empty: there is none.
  std::string events_endpoint_;
  std::vector<SocketClaim> claims_;  ///< Outlive the sockets.
  AcceptGuard accept_guard_;
  SocketThreads socket_threads_;
  std::unique_ptr<ZapAuthenticator> zap_;
  std::unique_ptr<Router> local_router_;
  std::unique_ptr<Router> remote_router_;
  std::unique_ptr<EventPublisher> events_;
  std::vector<std::unique_ptr<ArenaSocket>> arena_sockets_;
};

/// The address of a bound endpoint as a client connects to it: one that stands for all addresses is
/// none. A remote client puts the host by which it reached the daemon in the place of `*`. Empty
/// for a Unix socket that is out of a remote client's reach.
std::string address_for_client(bool remote, std::string endpoint);

}  // namespace batchwright
