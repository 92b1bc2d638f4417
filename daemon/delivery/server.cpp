#include "daemon/delivery/server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

namespace batchwright {
namespace {

unsigned remote_threads(const ServerSettings& settings) {
  const auto is_remote = [](const std::string& endpoint) { return endpoint.starts_with("tcp://"); };
  const bool any = std::any_of(settings.endpoints.begin(), settings.endpoints.end(), is_remote) ||
                   is_remote(settings.events);
  return any ? SocketThreads::remote_threads_of(std::thread::hardware_concurrency()) : 0;
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
      late_timer_(loop),
      alive_timer_(loop),
      retired_timer_(loop),
      waiting_timer_(loop),
      accept_guard_(loop, log_),
      socket_threads_(&log_, remote_threads(settings_)) {}

Server::~Server() = default;

void Server::say_goodbye() {
  for (const auto& [id, session] : sessions_) send(session.peer, encode(wire::ByeT{}));
}

/// Events publish session numbers, and a process that knows the number of an unbound session could
/// bind it: so its joining is published only later.
void Server::joined(const Session& session) {
  wire::EventT event;
  event.kind = wire::EventKind::client_joined;
  event.session = session.id().value;
  event.text = session.client.program;
  publish(std::move(event));
  if (session.client.inline_batches && !saying_alive_) say_alive();
}

void Server::left(const Session& session) {
  if (!session.bound && !session.client.inline_batches) return;  // its joining was not published
  wire::EventT event;
  event.kind = wire::EventKind::client_left;
  event.session = session.id().value;
  event.text = session.client.program;
  publish(std::move(event));
}

/// A peer that cannot be reached shows when something is sent to it.
void Server::say_alive() {
  saying_alive_ = false;
  for (const auto& [id, session] : sessions_) {
    if (!session.client.inline_batches) continue;
    saying_alive_ = true;
    send(session.peer, encode(wire::AliveT{}));
  }
  if (!saying_alive_) return;
  alive_timer_.expires_after(kAlive);
  alive_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) say_alive();
  });
}

void Server::publish(wire::EventT event) {
  if (events_) events_->publish(std::move(event));
}

/// A client that never shows its sign of life could never be missed.
void Server::drop_unbound(SessionId id) {
  auto& timer = bind_timers_[id] =
      std::make_unique<boost::asio::steady_timer>(loop_, settings_.bind_time);
  timer->async_wait([this, id](const boost::system::error_code& error) {
    if (!error) close_session(id, "it did not connect to the arena socket");
  });
}

bool Server::bind_session(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  Session& session = found->second;
  if (session.bound || session.client.inline_batches) return false;
  session.bound = true;
  bind_timers_.erase(id);
  joined(session);
  return true;
}

/// The arena connection has ended, so the client no longer reads the slots. A client's end may
/// overtake its last words, and in a queue a release among them says what must not be done again:
/// its leases go to others after kLastWords, for ZeroMQ's thread may get no processor for long.
void Server::on_lost(SessionId id) {
  for (const auto& feed : feeds_) feed->let_go(id);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.lost = true;
  const bool in_queue = std::any_of(feeds_.begin(), feeds_.end(),
                                    [id](const auto& feed) { return feed->has_in_queue(id); });
  if (!in_queue) return close_session(id, "its connection ended");
  for (const auto& feed : feeds_) feed->stop_serving(id);
  auto& timer = bind_timers_[id] = std::make_unique<boost::asio::steady_timer>(loop_, kLastWords);
  timer->async_wait([this, id](const boost::system::error_code& error) {
    if (!error) close_session(id, "its connection ended");
  });
}

/// A process that lives may read its batches for as long as it keeps its arena connection. That is
/// closed where nothing is held; otherwise only our direction of it, by which the client learns
/// that the session is over. Takes the id by value: it often lives in the session that goes.
void Server::close_session(SessionId id, const std::string& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  log_.note<Event::client_gone>(id.value, found->second.client.program, found->second.client.pid,
                                why);
  by_peer_.erase(found->second.peer);
  bind_timers_.erase(id);
  late_answers_.forget(id);
  const auto gone = sessions_.extract(found);
  std::size_t held = 0;
  for (const auto& feed : feeds_) held += feed->drop_session(id, gone.mapped().departure());
  if (held != 0) log_.note<Event::slots_held_over>(id.value, held);
  for (const auto& socket : arena_sockets_) {
    held != 0 ? socket->retire(id) : socket->disconnect(id);
  }
  waiting_room_.remove_session(id);
  left(gone.mapped());  // listeners of the event find the slots free
}

Session* Server::find(const PeerName& peer) {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : &sessions_.at(found->second);
}

void Server::send(const PeerName& peer, const flatbuffers::DetachedBuffer& message) {
  const auto sent = router(peer).send(peer, bytes_of(message));
  if (!sent) unreachable(peer, sent.error());
}

void Server::send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return boost::asio::post(loop_, std::move(batch.sent));
  const PeerName peer = found->second.peer;
  const auto sent = router(peer).send(peer, bytes_of(ticket), std::move(batch));
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
