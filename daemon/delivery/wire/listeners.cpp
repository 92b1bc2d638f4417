#include "daemon/delivery/wire/listeners.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace batchwright {
namespace {

constexpr std::string_view kTcp = "tcp://";

/// Connections to the arena socket that have not named a session.
constexpr std::size_t kUnboundConnections = 64;

unsigned remote_threads(const ListenerSettings& settings) {
  const auto is_remote = [](const std::string& endpoint) { return endpoint.starts_with(kTcp); };
  const bool any = std::any_of(settings.endpoints.begin(), settings.endpoints.end(), is_remote) ||
                   is_remote(settings.events);
  return any ? SocketThreads::remote_threads_of(std::thread::hardware_concurrency()) : 0;
}

}  // namespace

Listeners::Listeners(boost::asio::io_context& loop, EventLog& log, ListenerSettings settings,
                     Calls calls)
    : loop_(loop),
      log_(log),
      settings_(std::move(settings)),
      calls_(std::move(calls)),
      accept_guard_(loop, log),
      socket_threads_(&log, remote_threads(settings_)) {
  calls_.arena.admit = [this](const std::optional<PeerCredentials>& peer) {
    const auto admitted = settings_.allowed.check(peer);
    if (!admitted) log_.note<Event::client_refused>(admitted.error().message);
    return admitted.has_value();
  };
  calls_.arena.delayed = [this](const std::string& why) { log_.note<Event::arena_delayed>(why); };
}

Result<void> Listeners::open() {
  // libzmq starts its threads with the first socket, and one that runs its sockets beside them.
  const unsigned threads = 2 + remote_threads(settings_);
  if (auto room = room_for_threads(threads, "listening"); !room) return room;
  if (auto gate = open_gate(); !gate) return gate;
  for (const std::string& endpoint : settings_.endpoints) {
    auto listening = endpoint.starts_with(kIpc) ? listen_local(endpoint)
                     : endpoint.starts_with(kTcp)
                         ? listen_remote(endpoint)
                         : Error{ErrorCode::invalid_argument,
                                 fmt::format("{}: allowed: ipc:// or tcp://", endpoint)};
    if (!listening) return listening;
  }
  return listen_for_events();
}

/// Before the first endpoint: ZeroMQ looks for it at each connection.
Result<void> Listeners::open_gate() {
  if (!has_key_list()) return {};
  zap_ =
      std::make_unique<ZapAuthenticator>(loop_, socket_threads_, log_, *settings_.keys.authorized);
  return zap_->open();
}

/// The claim comes first: ZeroMQ would take the path away from another daemon.
Result<void> Listeners::listen_local(const std::string& endpoint) {
  const std::string own_path = endpoint.substr(kIpc.size());
  const std::string path = own_path + std::string(kArenaSuffix);
  const RestrictedUmask nobody_else;
  if (auto claimed = claim(own_path); !claimed) return claimed;
  if (auto listening = listen_arena(path); !listening) return listening;
  if (!local_router_) {
    local_router_ =
        std::make_unique<Router>(loop_, socket_threads_, Router::Settings{}, calls_.message);
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

Result<void> Listeners::claim(const std::string& path) {
  auto claimed = claim_socket_path(path);
  if (!claimed) return claimed.error();
  claims_.push_back(std::move(*claimed));
  return {};
}

Result<void> Listeners::listen_arena(const std::string& path) {
  auto socket = ArenaSocket::listen(
      loop_, path,
      {std::size_t{settings_.max_clients} + settings_.max_producers + kUnboundConnections,
       settings_.bind_time},
      calls_.arena);
  if (!socket) return socket.error();
  arena_sockets_.push_back(std::move(*socket));
  return {};
}

Result<void> Listeners::listen_remote(const std::string& endpoint) {
  const std::string& secret_key = settings_.keys.secret_key;
  if (!remote_router_) {
    remote_router_ = std::make_unique<Router>(
        loop_, socket_threads_, Router::Settings{true, secret_key, has_key_list()}, calls_.message);
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
  note_remote(*bound, *public_key);
  return {};
}

void Listeners::note_remote(const std::string& endpoint, const std::string& public_key) {
  log_.note<Event::listening_with_keys>(
      endpoint, public_key,
      has_key_list() ? fmt::format("{} clients' keys authorized", settings_.keys.authorized->size())
                     : std::string("any client that knows it is let in"));
}

Result<void> Listeners::listen_for_events() {
  if (settings_.events.empty()) return {};
  const bool remote = settings_.events.starts_with(kTcp);
  const std::string path = remote ? "" : settings_.events.substr(kIpc.size());
  const RestrictedUmask nobody_else;
  if (!remote) {
    if (auto claimed = claim(path); !claimed) return claimed;
  }
  events_ = std::make_unique<EventPublisher>(
      loop_, socket_threads_,
      Router::Settings{remote, remote ? settings_.keys.secret_key : "", remote && has_key_list()});
  auto bound = events_->bind(settings_.events);
  if (!bound) return bound.error();
  if (!remote) {
    if (auto set = set_access(path, settings_.access); !set) return set;
  }
  events_endpoint_ = *bound;
  log_.note<Event::events_listening>(events_endpoint_);
  return {};
}

Result<void> Listeners::send(const PeerName& peer, const flatbuffers::DetachedBuffer& message) {
  return router(peer).send(peer, bytes_of(message));
}

Result<void> Listeners::send(const PeerName& peer, const flatbuffers::DetachedBuffer& ticket,
                             Payload batch) {
  return router(peer).send(peer, bytes_of(ticket), std::move(batch));
}

void Listeners::publish(wire::EventT event) {
  if (events_) events_->publish(std::move(event));
}

void Listeners::disconnect(SessionId session) {
  for (const auto& socket : arena_sockets_) socket->disconnect(session);
}

void Listeners::retire(SessionId session) {
  for (const auto& socket : arena_sockets_) socket->retire(session);
}

void Listeners::set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized) {
  settings_.allowed = std::move(allowed);
  if (zap_ && authorized) zap_->authorize(std::move(*authorized));
}

std::string Listeners::arena_path_for(const PeerName& peer) const {
  return peer.remote ? "" : arena_path_;
}

std::string Listeners::events_for(const PeerName& peer) const {
  return address_for_client(peer.remote, events_endpoint_);
}

std::string address_for_client(bool remote, std::string endpoint) {
  if (remote && endpoint.starts_with(kIpc)) return "";
  for (const std::string_view everywhere : {"//0.0.0.0:", "//[::]:"}) {
    const std::size_t at = endpoint.find(everywhere);
    if (at == std::string::npos) continue;
    endpoint.replace(at, everywhere.size(), remote ? "//*:" : "//localhost:");
  }
  return endpoint;
}

}  // namespace batchwright
