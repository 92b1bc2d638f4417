// How clients come and go, and what is sent to them.

#include <algorithm>
#include <boost/asio/post.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

/// Batches larger than this travel in parts, if the client can put them together, which costs it a
/// copy; a smaller one takes no time that matters, on a link that is worth it.
constexpr std::size_t kPartsFrom = std::size_t{4} << 20;
constexpr std::size_t kPart = std::size_t{1} << 20;

wire::EventT about(const Session& session) {
  wire::EventT event;
  event.session = session.id().value;
  event.text = session.client.program;
  return event;
}

}  // namespace

/// Events publish session numbers, and a process that knows the number of an unbound session could
/// bind it: so its joining is published only later.
void Server::joined(const Session& session) {
  log_.tell_later<Event::client_connected>(about(session));
  if (session.client.inline_batches && !alive_.is_running() && say_alive()) alive_.start();
}

void Server::left(const Session& session) {
  if (!session.is_known()) return;  // its joining was not published
  log_.tell_later<Event::client_gone>(about(session));
}

/// Ends the sessions of remote clients that are lost, and their connections: what ZeroMQ has queued
/// for one lies in slots.
void Server::end_lost() {
  const auto now = Pulse::Time::clock::now();
  std::vector<std::pair<SessionId, std::string>> lost;
  for (const auto& [id, session] : sessions_.all()) {
    if (!session.pulse) continue;
    const auto traffic = traffic_of(session.connection);
    if (!traffic) continue;  // it has ended, and ZeroMQ tells of it
    auto why = sessions_.find(id)->pulse->lost(*traffic, now, rules_.silence);
    if (why) lost.emplace_back(id, std::move(*why));
  }
  for (const auto& [id, why] : lost) {
    const Connection connection = sessions_.find(id)->connection;
    close_session(id, why);
    end(connection);
  }
}

/// A peer that cannot be reached shows when something is sent to it. False when there is none.
bool Server::say_alive() {
  end_lost();
  bool any = false;
  for (const auto& [id, session] : sessions_.all()) {
    if (!session.client.inline_batches) continue;
    any = true;
    send(session.peer, encode(wire::AliveT{}));
  }
  return any;
}

bool Server::bind_session(SessionId id) {
  const Session* session = sessions_.bind(id);
  if (session == nullptr) return false;
  joined(*session);
  return true;
}

/// The arena connection has ended, so the client no longer reads the slots. A client's end may
/// overtake its last words, and in a queue a release among them says what must not be done again:
/// its leases go to others after kLastWords, for ZeroMQ's thread may get no processor for long.
void Server::on_lost(SessionId id) {
  for (const auto& feed : feeds()) feed->let_go(id);
  Session* session = sessions_.find(id);
  if (session == nullptr) return;
  session->lost = true;
  const bool in_queue = std::any_of(feeds().begin(), feeds().end(),
                                    [id](const auto& feed) { return feed->has_in_queue(id); });
  if (!in_queue) return close_session(id, "its connection ended");
  for (const auto& feed : feeds()) feed->stop_serving(id);
  sessions_.set_deadline(id, kLastWords, [this, id] { close_session(id, "its connection ended"); });
}

/// A process that lives may read its batches for as long as it keeps its arena connection. That is
/// closed where nothing is held; otherwise only our direction of it, by which the client learns
/// that the session is over. Takes the id by value: it often lives in the session that goes.
void Server::close_session(SessionId id, const std::string& why) {
  const std::optional<Session> gone = sessions_.take(id);
  if (!gone) return;
  log_.note<Event::client_gone>(id.value, gone->client.program, gone->client.pid, why);
  late_answers_.forget(id);
  std::size_t held = 0;
  for (const auto& feed : feeds()) held += feed->drop_session(id, gone->ending());
  if (held != 0) log_.note<Event::slots_held_over>(id.value, held);
  held != 0 ? listeners_.retire(id) : listeners_.disconnect(id);
  unavailable_.pending().remove_session(id);
  left(*gone);  // listeners of the event find the slots free
}

void Server::send(const PeerName& peer, const flatbuffers::DetachedBuffer& message) {
  const auto sent = listeners_.send(peer, message);
  if (!sent) unreachable(peer, sent.error());
}

void Server::send_to_session(SessionId id, const flatbuffers::DetachedBuffer& message) {
  if (const Session* session = sessions_.find(id)) send(session->peer, message);
}

void Server::send_batch(SessionId id, const flatbuffers::DetachedBuffer& ticket, Payload batch) {
  const Session* session = sessions_.find(id);
  if (session == nullptr) return boost::asio::post(loop_, std::move(batch.sent));
  const PeerName peer = session->peer;
  const bool in_parts = session->client.abilities.has(Ability::parts);
  if (in_parts && batch.bytes.size() > kPartsFrom) batch.part_bytes = kPart;
  const auto sent = listeners_.send(peer, ticket, std::move(batch));
  if (!sent) unreachable(peer, sent.error());
}

void Server::unreachable(const PeerName& peer, const Error& error) {
  const Session* session = sessions_.find(peer);
  if (session == nullptr) return;
  // Not now: the caller may be walking through this session's subscriptions.
  boost::asio::post(loop_,
                    [this, id = session->id(), why = error.message] { close_session(id, why); });
}

void Server::refuse(const PeerName& peer, const Error& error, SubscriptionNumber subscription,
                    std::uint32_t producer) {
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(error.code);
  refused.message = error.message;
  refused.subscription = subscription.value;
  refused.producer = producer;
  send(peer, encode(std::move(refused)));
}

void Server::tell_reason(const SubscriptionKey& key, const Error& why) {
  wire::WaitingT answer;
  answer.subscription = key.number.value;
  answer.reason = why.message;
  send_to_session(key.session, encode(std::move(answer)));
}

}  // namespace batchwright
