// The messages of clients, and the answers to them.

#include <fmt/format.h>

#include <random>
#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Peers whose offences are remembered.
constexpr std::size_t kMaxOffenders = 1024;

/// Not guessable, so that a process cannot bind its connection to another's session.
SessionId new_session_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (std::uint64_t{device()} << 32) | device();
  return SessionId{id};
}

/// What a client can connect to: a Unix socket is out of a remote one's reach, and an address that
/// stands for all is none. A remote client puts the host by which it reached the daemon in the
/// place of `*`.
std::string events_for(bool remote, std::string endpoint) {
  if (remote && endpoint.starts_with("ipc://")) return "";
  for (const std::string_view everywhere : {"//0.0.0.0:", "//[::]:"}) {
    const std::size_t at = endpoint.find(everywhere);
    if (at == std::string::npos) continue;
    endpoint.replace(at, everywhere.size(), remote ? "//*:" : "//localhost:");
  }
  return endpoint;
}

}  // namespace

void Server::on_message(const Router::Incoming& incoming) {
  const PeerName& peer = incoming.peer;
  if (const auto found = conduct_.find(peer);
      found != conduct_.end() && found->second.is_past_bearing()) {
    log_.count(Event::malformed_message);
    return;
  }
  if (incoming.frames != 1) {
    return on_malformed(peer, std::to_string(incoming.frames) + " frames; a message has one");
  }
  const auto message = ControlMessage::decode(incoming.frame);
  if (!message) return on_malformed(peer, message.error().message);
  if (const auto* hello = message->as<wire::Hello>()) return on_hello(incoming, *hello);
  Session* session = find(peer);
  if (session != nullptr) return on_session_message(*session, *message);
  refuse(peer, {ErrorCode::disconnected, "no session: Hello comes first"});
  static_cast<void>(bears_refusal(peer));
}

void Server::on_hello(const Router::Incoming& incoming, const wire::Hello& hello) {
  const PeerName& peer = incoming.peer;
  if (const auto admitted = admit(incoming, hello); !admitted) {
    return turn_away(peer, admitted.error());
  }
  if (const Session* old = find(peer)) {
    if (!bears_refusal(peer)) return;
    close_session(old->id(), "it says Hello again");
  }
  if (const auto replaced = replace_earlier(incoming, hello.token()); !replaced) {
    return turn_away(peer, replaced.error());
  }
  if (sessions_.size() >= settings_.max_clients) {
    return turn_away(peer,
                     {ErrorCode::does_not_fit,
                      fmt::format("{} clients are connected, no more are allowed (max_clients)",
                                  sessions_.size())});
  }
  const SessionId id = new_session_id();
  const std::string program =
      hello.client() != nullptr ? program_name(hello.client()->string_view()) : "";
  Session& session = sessions_[id];
  session.client = {id, hello.token(), program, hello.pid(), hello.inline_batches()};
  session.peer = peer;
  session.user = credentials_of(incoming.peer_address);
  by_peer_[peer] = id;
  log_.note<Event::client_connected>(id.value, program, hello.pid(),
                                     hello.inline_batches() ? ", without an arena" : "");
  welcome(session);
  hello.inline_batches() ? joined(session) : drop_unbound(id);
}

Result<void> Server::admit(const Router::Incoming& incoming, const wire::Hello& hello) const {
  if (hello.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("the client speaks protocol {}, this daemon ({}) speaks {}",
                             hello.protocol(), settings_.version, kProtocolVersion)};
  }
  if (!incoming.peer.remote) return settings_.allowed.check(credentials_of(incoming.peer_address));
  if (hello.inline_batches()) return {};
  return Error{ErrorCode::invalid_argument,
               "over tcp:// there is no arena: Hello has to ask for inline_batches"};
}

/// A client that is back has noticed its loss before we did. It comes the same way and as the same
/// user: a token is no secret, for the ledger shows it.
Result<void> Server::replace_earlier(const Router::Incoming& incoming, std::uint64_t token) {
  const auto earlier = std::find_if(sessions_.begin(), sessions_.end(), [token](const auto& entry) {
    return token != 0 && entry.second.client.token == token;
  });
  if (earlier == sessions_.end()) return {};
  Session& session = earlier->second;
  const auto user = credentials_of(incoming.peer_address);
  const bool is_other_user = user && session.user && *user != *session.user;
  if (session.peer.remote != incoming.peer.remote || is_other_user) {
    return Error{ErrorCode::invalid_argument, "the token of this Hello is another client's"};
  }
  session.returning = true;
  close_session(earlier->first, "its client is back");
  return {};
}

void Server::turn_away(const PeerName& peer, const Error& error) {
  log_.note<Event::client_refused>(error.message);
  refuse(peer, error);
  if (bears_refusal(peer)) send(peer, encode(wire::ByeT{}));
}

/// Counts a rejected request. False once the peer has exceeded its allowance: it has then been told
/// so, and its session is closed.
bool Server::bears_refusal(const PeerName& peer) {
  Conduct& peers = conduct(peer);
  peers.refused(Clock::now());
  if (!peers.asks_too_often()) return true;
  stop_listening_to(peer);
  return false;
}

void Server::stop_listening_to(const PeerName& peer) {
  log_.note<Event::client_ignored>();
  refuse(peer, {ErrorCode::invalid_argument,
                "too many rejected requests; this connection is no longer answered"});
  send(peer, encode(wire::ByeT{}));
  if (const Session* session = find(peer))
    close_session(session->id(), "too many rejected requests");
}

Conduct& Server::conduct(const PeerName& peer) {
  if (const auto found = conduct_.find(peer); found != conduct_.end()) return found->second;
  if (conduct_.size() >= kMaxOffenders) conduct_.clear();
  return conduct_.emplace(peer, Clock::now()).first->second;
}

void Server::welcome(const Session& session) {
  wire::WelcomeT answer;
  answer.protocol = kProtocolVersion;
  answer.version = settings_.version;
  answer.session = session.id().value;
  if (!session.peer.remote) answer.arena_socket = arena_path_;
  answer.events = events_for(session.peer.remote, events_endpoint_);
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
    const auto& leases = *release->leases();
    waiting_room_.release({session.id(), release->subscription()},
                          std::vector<std::uint64_t>(leases.begin(), leases.end()));
  } else if (const auto* unsubscribe = message.as<wire::Unsubscribe>()) {
    for (const auto& feed : feeds_) feed->unsubscribe(session.id(), unsubscribe->subscription());
    waiting_room_.remove({session.id(), unsubscribe->subscription()});
  } else if (const auto* question = message.as<wire::Ask>()) {
    for (const auto& feed : feeds_) feed->ask(session.id(), *question);
    ask_of_absent({session.id(), question->subscription()}, question->quiet());
  } else if (message.as<wire::Bye>() != nullptr) {
    session.leaving = true;
    close_session(session.id(), "it says Bye");
  } else {
    on_malformed(PeerName(session.peer), std::string("a message that a client does not send: ") +
                                             wire::EnumNameBody(message.kind()));
  }
}

void Server::on_subscribe(const Session& session, const wire::Subscribe& request) {
  if (auto done = subscribe(session, request); !done) {
    refuse_subscription(session, request.subscription(), done.error());
  }
}

/// A program that tries again and again may do so for a good reason, and holds batches of other
/// feeds meanwhile: its session stays, and the answers come slower. Only a program that does not
/// wait for them loses it.
void Server::refuse_subscription(const Session& session, std::uint32_t subscription,
                                 const Error& error) {
  const PeerName peer = session.peer;
  log_.note<Event::subscription_refused>(session.id().value, error.message);
  Conduct& peers = conduct(peer);
  if (peers.bears_refused(Clock::now())) return refuse(peer, error, subscription);
  const bool is_first = late_answers_.empty();
  if (late_answers_.add(session.id(), {subscription, error})) {
    if (is_first) answer_late();
    return;
  }
  peers.refused(Clock::now());
  stop_listening_to(peer);
}

void Server::answer_late() {
  late_timer_.expires_after(kAlive);
  late_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [id, refusal] : late_answers_.take_due()) {
      const auto found = sessions_.find(id);
      if (found != sessions_.end()) {
        refuse(found->second.peer, refusal.error, refusal.subscription);
      }
    }
    if (!late_answers_.empty()) answer_late();
  });
}

Result<void> Server::subscribe(const Session& session, const wire::Subscribe& request) {
  if (session.lost || (!session.bound && !session.client.inline_batches)) {
    return Error{ErrorCode::invalid_argument, "connect to the arena socket first"};
  }
  if (settings_.feed_grace.count() != 0) put_away_failed();  // it may have failed in this turn
  Feed* feed = find_feed(request.feed()->string_view());
  const AbsentFeed* absent = find_absent(request.feed()->string_view());
  if (feed == nullptr && absent == nullptr) {
    std::string names;
    for (const auto& each : feeds_) names += (names.empty() ? "" : ", ") + each->name();
    return Error{ErrorCode::not_found,
                 "no feed \"" + request.feed()->str() + "\"; this daemon serves: " + names};
  }
  for (const auto& each : feeds_) {
    if (each->subscriptions().contains({session.id(), request.subscription()})) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("subscription {} is taken", request.subscription())};
    }
  }
  if (feed == nullptr) return await_feed(session, request, *absent);
  return feed->subscribe(session.client, request);
}

void Server::on_malformed(const PeerName& peer, const std::string& what) {
  const std::uint32_t offences = conduct(peer).malformed();
  log_.note<Event::malformed_message>(offences, Conduct::kMalformed, what);
  refuse(peer, {ErrorCode::malformed_message, what});
  if (offences < Conduct::kMalformed) return;
  send(peer, encode(wire::ByeT{}));
  if (const Session* session = find(peer))
    close_session(session->id(), "it sent malformed messages");
}

}  // namespace batchwright
