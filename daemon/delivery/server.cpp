#include "daemon/delivery/server.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

namespace batchwright {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kArenaSuffix = ".arena";

/// Malformed messages after which a peer is no longer answered.
constexpr std::uint32_t kMaxOffences = 3;
/// Connections to the arena socket that have not named a session.
constexpr std::size_t kUnboundConnections = 64;
/// Peers whose offences are remembered.
constexpr std::size_t kMaxOffenders = 1024;

std::string arena_path(const std::string& endpoint) {
  return endpoint.substr(kIpc.size()) + std::string(kArenaSuffix);
}

/// Not guessable, so that a process cannot bind its connection to another's session.
SessionId new_session_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (std::uint64_t{device()} << 32) | device();
  return SessionId{id};
}

/// Sockets made while it lives are the daemon's alone, until set_access() opens them to others:
/// who connects in between would stay connected.
class RestrictedUmask {
 public:
  RestrictedUmask() : before_(::umask(0177)) {}
  ~RestrictedUmask() { ::umask(before_); }
  RestrictedUmask(const RestrictedUmask&) = delete;
  RestrictedUmask& operator=(const RestrictedUmask&) = delete;

 private:
  mode_t before_;
};

Result<void> set_access(const std::string& path, const ServerSettings& settings) {
  const auto failed = [&path](const char* call) {
    return Error{ErrorCode::io_error, std::string(call) + " " + path + ": " + std::strerror(errno)};
  };
  if (settings.socket_gid &&
      ::chown(path.c_str(), static_cast<uid_t>(-1), *settings.socket_gid) != 0) {
    return failed("chown");
  }
  if (::chmod(path.c_str(), settings.socket_mode) != 0) return failed("chmod");
  return {};
}

std::span<const std::byte> bytes_of(const flatbuffers::DetachedBuffer& message) {
  return {reinterpret_cast<const std::byte*>(message.data()), message.size()};
}

}  // namespace

Server::Server(boost::asio::io_context& loop, ServerSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      planner_(loop),
      assembler_(settings_.assembly_threads),
      router_(std::make_unique<Router>(
          loop, [this](const PeerName& peer, std::span<const std::byte> frame, std::size_t frames) {
            on_message(peer, frame, frames);
          })) {}

Server::~Server() = default;

void Server::add_feed(FeedSettings settings, FeedResources resources) {
  const auto number = static_cast<std::uint32_t>(feeds_.size() + 1);
  FeedPorts ports{loop_, planner_, assembler_, readahead_, settings_.assembly_threads,
                  {},    {},       {},         memory_};
  ports.send = [this](SessionId session, const flatbuffers::DetachedBuffer& message) {
    send_to_session(session, message);
  };
  ports.send_batch = [this](SessionId session, const flatbuffers::DetachedBuffer& ticket,
                            std::span<const std::byte> batch, std::function<void()> sent) {
    send_batch(session, ticket, {batch, std::move(sent)});
  };
  ports.publish = [](const wire::EventT& event) {
    spdlog::debug("event {} {}", wire::EnumNameEventKind(event.kind), event.feed);
  };
  feeds_.push_back(
      std::make_unique<Feed>(number, std::move(settings), std::move(resources), std::move(ports)));
}

Result<void> Server::listen() {
  for (const std::string& endpoint : settings_.endpoints) {
    if (auto listening = listen_at(endpoint); !listening) return listening;
  }
  for (const auto& feed : feeds_) feed->start();
  return {};
}

/// The arena socket comes first: it tells whether another daemon is there, while ZeroMQ would
/// take the path away from it.
Result<void> Server::listen_at(const std::string& endpoint) {
  if (!endpoint.starts_with(kIpc)) {
    return Error{ErrorCode::invalid_argument, endpoint + ": an endpoint starts with ipc://"};
  }
  const std::string path = arena_path(endpoint);
  const RestrictedUmask nobody_else;
  auto socket =
      ArenaSocket::listen(loop_, path, settings_.max_clients + kUnboundConnections,
                          {[this](SessionId id) { return bind_session(id); },
                           [this](SessionId id) { close_session(id, "its connection ended"); },
                           [this](std::uint32_t number) { return find_arena(number); }});
  if (!socket) return socket.error();
  arena_sockets_.push_back(std::move(*socket));
  if (auto bound = router_->bind(endpoint); !bound) return bound;
  for (const std::string& each : {path, endpoint.substr(kIpc.size())}) {
    if (auto set = set_access(each, settings_); !set) return set;
  }
  spdlog::info("listening at {}", endpoint);
  return {};
}

void Server::say_goodbye() {
  for (const auto& [id, session] : sessions_) send(session.peer, encode(wire::ByeT{}));
}

void Server::on_message(const PeerName& peer, std::span<const std::byte> frame,
                        std::size_t frames) {
  if (const auto found = offences_.find(peer);
      found != offences_.end() && found->second >= kMaxOffences) {
    ++malformed_messages_;
    return;
  }
  if (frames != 1) {
    return on_malformed(peer, std::to_string(frames) + " frames; a message has one");
  }
  const auto message = ControlMessage::decode(frame);
  if (!message) return on_malformed(peer, message.error().message);
  if (const auto* hello = message->as<wire::Hello>()) return on_hello(peer, *hello);
  Session* session = find(peer);
  if (session == nullptr) {
    return refuse(peer, {ErrorCode::disconnected, "no session: Hello comes first"});
  }
  on_session_message(*session, *message);
}

void Server::on_hello(const PeerName& peer, const wire::Hello& hello) {
  if (hello.protocol() != kProtocolVersion) {
    refuse(peer, {ErrorCode::unsupported_version,
                  fmt::format("the client speaks protocol {}, this daemon ({}) speaks {}",
                              hello.protocol(), settings_.version, kProtocolVersion)});
    return send(peer, encode(wire::ByeT{}));
  }
  if (const Session* old = find(peer)) close_session(old->id(), "it says Hello again");
  if (sessions_.size() >= settings_.max_clients) {
    refuse(peer, {ErrorCode::does_not_fit,
                  fmt::format("{} clients are connected, no more are allowed (max_clients)",
                              sessions_.size())});
    return send(peer, encode(wire::ByeT{}));
  }
  const SessionId id = new_session_id();
  const std::string program = hello.client() != nullptr ? hello.client()->str().substr(0, 64) : "";
  const auto& session =
      sessions_[id] = {{id, hello.token(), program, hello.pid(), hello.inline_batches()}, peer};
  by_peer_[peer] = id;
  if (!hello.inline_batches()) drop_unbound(id);
  spdlog::info("session {:x}: {} (pid {}) connects{}", id.value, program, hello.pid(),
               hello.inline_batches() ? ", without an arena" : "");
  welcome(session);
}

/// A client that never shows its sign of life could never be missed.
void Server::drop_unbound(SessionId id) {
  auto& timer = bind_timers_[id] = std::make_unique<boost::asio::steady_timer>(loop_, kBindTime);
  timer->async_wait([this, id](const boost::system::error_code& error) {
    if (!error) close_session(id, "it did not connect to the arena socket");
  });
}

void Server::welcome(const Session& session) {
  wire::WelcomeT answer;
  answer.protocol = kProtocolVersion;
  answer.version = settings_.version;
  answer.session = session.id().value;
  answer.arena_socket = arena_path(settings_.endpoints.front());
  std::size_t category_bytes = 0;
  for (const auto& feed : feeds_) {
    answer.feeds.push_back(std::make_unique<wire::FeedInfoT>(feed->info()));
    for (auto& field : answer.feeds.back()->fields) {
      for (const std::string& name : field->categories) category_bytes += name.size() + 16;
      // Names by the ten thousand do not fit a message; the values themselves are unharmed.
      if (category_bytes > kMaxControlBytes / 2) field->categories.clear();
    }
  }
  send(session.peer, encode(std::move(answer)));
}

void Server::on_session_message(Session& session, const ControlMessage& message) {
  if (const auto* subscribe = message.as<wire::Subscribe>()) {
    on_subscribe(session, *subscribe);
  } else if (const auto* release = message.as<wire::Release>()) {
    for (const auto& feed : feeds_) {
      if (feed->subscriptions().contains({session.id(), release->subscription()})) {
        return feed->release(session.id(), *release);
      }
    }
  } else if (const auto* unsubscribe = message.as<wire::Unsubscribe>()) {
    for (const auto& feed : feeds_) feed->unsubscribe(session.id(), unsubscribe->subscription());
  } else if (const auto* question = message.as<wire::Ask>()) {
    for (const auto& feed : feeds_) feed->ask(session.id(), *question);
  } else if (message.as<wire::Bye>() != nullptr) {
    session.leaving = true;
    close_session(session.id(), "it says Bye");
  } else {
    on_malformed(PeerName(session.peer), std::string("a message that a client does not send: ") +
                                             wire::EnumNameBody(message.kind()));
  }
}

void Server::on_subscribe(const Session& session, const wire::Subscribe& request) {
  const auto refuse_it = [&](const Error& error) {
    spdlog::warn("session {:x}: subscription refused: {}", session.id().value, error.message);
    refuse(session.peer, error, request.subscription());
  };
  if (!session.bound && !session.client.inline_batches) {
    return refuse_it({ErrorCode::invalid_argument, "connect to the arena socket first"});
  }
  Feed* feed = find_feed(request.feed()->string_view());
  if (feed == nullptr) {
    std::string names;
    for (const auto& each : feeds_) names += (names.empty() ? "" : ", ") + each->name();
    return refuse_it({ErrorCode::not_found,
                      "no feed \"" + request.feed()->str() + "\"; this daemon serves: " + names});
  }
  for (const auto& each : feeds_) {
    if (each->subscriptions().contains({session.id(), request.subscription()})) {
      return refuse_it({ErrorCode::invalid_argument,
                        fmt::format("subscription {} is taken", request.subscription())});
    }
  }
  if (auto done = feed->subscribe(session.client, request); !done) refuse_it(done.error());
}

void Server::on_malformed(const PeerName& peer, const std::string& what) {
  ++malformed_messages_;
  if (offences_.size() >= kMaxOffenders) offences_.clear();
  const std::uint32_t offences = ++offences_[peer];
  spdlog::warn("malformed message ({} of {} from this peer): {}", offences, kMaxOffences, what);
  refuse(peer, {ErrorCode::malformed_message, what});
  if (offences < kMaxOffences) return;
  send(peer, encode(wire::ByeT{}));
  if (const Session* session = find(peer))
    close_session(session->id(), "it sent malformed messages");
}

bool Server::bind_session(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.bound) return false;
  found->second.bound = true;
  bind_timers_.erase(id);
  return true;
}

/// Takes the id by value: it often lives in the session that goes.
void Server::close_session(SessionId id, const std::string& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  spdlog::info("session {:x}: {} (pid {}) ends: {}", id.value, found->second.client.program,
               found->second.client.pid, why);
  // A connection over a network ends for many reasons; the arena socket's only with the client.
  const bool may_return = found->second.client.inline_batches && !found->second.leaving;
  by_peer_.erase(found->second.peer);
  bind_timers_.erase(id);
  sessions_.erase(found);
  for (const auto& socket : arena_sockets_) socket->disconnect(id);
  for (const auto& feed : feeds_) feed->drop_session(id, may_return);
}

Session* Server::find(const PeerName& peer) {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : &sessions_.at(found->second);
}

Feed* Server::find_feed(std::string_view name) {
  const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                  [name](const auto& feed) { return feed->name() == name; });
  return found == feeds_.end() ? nullptr : found->get();
}

Result<ArenaHandle> Server::find_arena(std::uint32_t number) const {
  for (const auto& feed : feeds_) {
    const Arena* arena = feed->find_arena(number);
    if (arena != nullptr) return ArenaHandle{arena->descriptor(), arena->bytes()};
  }
  return Error{ErrorCode::not_found, "no arena " + std::to_string(number)};
}

void Server::send(const PeerName& peer, const flatbuffers::DetachedBuffer& message) {
  if (const auto sent = router_->send(peer, bytes_of(message)); !sent)
    unreachable(peer, sent.error());
}

void Server::send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch) {
  const auto found = sessions_.find(id);
  const PeerName peer = found == sessions_.end() ? PeerName() : found->second.peer;
  const auto sent = router_->send(peer, bytes_of(ticket), std::move(batch));
  if (!sent) unreachable(peer, sent.error());
}

void Server::unreachable(const PeerName& peer, const Error& error) {
  const Session* session = find(peer);
  if (session == nullptr) return;
  // Not now: the caller may be walking through this session's subscriptions.
  boost::asio::post(loop_,
                    [this, id = session->id(), why = error.message] { close_session(id, why); });
}

void Server::send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message) {
  const auto found = sessions_.find(id);
  if (found != sessions_.end()) send(found->second.peer, message);
}

void Server::refuse(const PeerName& peer, const Error& error, std::uint32_t subscription) {
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = subscription;
  send(peer, encode(std::move(refused)));
}

}  // namespace batchwright
