// Where the server listens, and on whose terms.

#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kArenaSuffix = ".arena";

/// Connections to the arena socket that have not named a session.
constexpr std::size_t kUnboundConnections = 64;

}  // namespace

Result<void> Server::listen() {
  if (auto open = open_gate(); !open) return open;
  for (const std::string& endpoint : settings_.endpoints) {
    auto listening = endpoint.starts_with(kIpc)   ? listen_local(endpoint)
                     : endpoint.starts_with(kTcp) ? listen_remote(endpoint)
                                                  : Error{ErrorCode::invalid_argument,
                                                          endpoint + ": allowed: ipc:// or tcp://"};
    if (!listening) return listening;
  }
  if (auto told = listen_for_events(); !told) return told;
  listening_ = true;
  for (const auto& feed : feeds_) feed->start();
  return {};
}

/// Before the first endpoint: ZeroMQ looks for it at each connection.
Result<void> Server::open_gate() {
  if (!has_allow_list()) return {};
  gatekeeper_ =
      std::make_unique<Gatekeeper>(loop_, socket_threads_, log_, *settings_.keys.authorized);
  return gatekeeper_->open();
}

/// The arena socket comes first: it tells whether another daemon is there, while ZeroMQ would
/// take the path away from it.
Result<void> Server::listen_local(const std::string& endpoint) {
  const std::string own_path = endpoint.substr(kIpc.size());
  const std::string path = own_path + std::string(kArenaSuffix);
  const RestrictedUmask nobody_else;
  auto socket = ArenaSocket::listen(
      loop_, path, {settings_.max_clients + kUnboundConnections, settings_.bind_time},
      {[this](const std::optional<PeerCredentials>& peer) {
         const auto allowed = settings_.allowed.check(peer);
         if (!allowed) log_.note<Event::client_refused>(allowed.error().message);
         return allowed.has_value();
       },
       [this](SessionId id) { return bind_session(id); },
       [this](SessionId id) { close_session(id, "it sent something other than an arena request"); },
       [this](SessionId id) { on_lost(id); },
       [this](ArenaNumber number) { return find_arena(number); }});
  if (!socket) return socket.error();
  arena_sockets_.push_back(std::move(*socket));
  if (auto cleared = clear_socket_path(own_path); !cleared) return cleared;
  if (!local_router_) {
    local_router_ = std::make_unique<Router>(
        loop_, socket_threads_, Router::Settings{},
        [this](const Router::Incoming& incoming) { on_message(incoming); });
  }
  if (auto bound = local_router_->bind(endpoint); !bound) return bound.error();
  for (const std::string& each : {path, own_path}) {
    if (auto set = set_access(each, settings_.access); !set) return set;
  }
  if (arena_path_.empty()) arena_path_ = path;
  endpoints_.push_back(endpoint);
  log_.note<Event::listening>(endpoint);
  return {};
}

Result<void> Server::listen_remote(const std::string& endpoint) {
  const std::string& secret_key = settings_.keys.secret_key;
  if (!remote_router_) {
    remote_router_ = std::make_unique<Router>(
        loop_, socket_threads_, Router::Settings{true, secret_key, has_allow_list()},
        [this](const Router::Incoming& incoming) { on_message(incoming); });
  }
  auto bound = remote_router_->bind(endpoint);
  if (!bound) return bound.error();
  endpoints_.push_back(*bound);
  if (secret_key.empty()) {
    log_.note<Event::listening_insecure>(*bound);
    return {};
  }
  const auto public_key = public_key_of(secret_key);
  if (!public_key) return public_key.error();
  log_.note<Event::listening_with_keys>(
      *bound, *public_key,
      has_allow_list()
          ? std::to_string(settings_.keys.authorized->size()) + " clients' keys authorized"
          : std::string("any client that knows it is let in"));
  return {};
}

Result<void> Server::listen_for_events() {
  if (settings_.events.empty()) return {};
  const bool remote = settings_.events.starts_with(kTcp);
  const std::string path = remote ? "" : settings_.events.substr(kIpc.size());
  const RestrictedUmask nobody_else;
  if (!remote) {
    if (auto cleared = clear_socket_path(path); !cleared) return cleared;
  }
  events_ = std::make_unique<EventPublisher>(
      loop_, socket_threads_,
      Router::Settings{remote, remote ? settings_.keys.secret_key : "",
                       remote && has_allow_list()});
  auto bound = events_->bind(settings_.events);
  if (!bound) return bound.error();
  if (!remote) {
    if (auto set = set_access(path, settings_.access); !set) return set;
  }
  events_endpoint_ = *bound;
  log_.note<Event::events_listening>(events_endpoint_);
  return {};
}

}  // namespace batchwright
