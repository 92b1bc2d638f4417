// The messages of clients, and the answers to them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

/// The messages that a client sends. Which of them are sound is checked when they are decoded
/// (formats/control.cpp).
constexpr Server::Handler Server::kHandlers[] = {
    {wire::Body::Release, true, &Server::on_release},
    {wire::Body::Ask, true, &Server::on_ask},
    {wire::Body::Subscribe, true, &Server::on_subscribe},
    {wire::Body::Unsubscribe, true, &Server::on_unsubscribe},
    {wire::Body::Hello, false, &Server::on_hello},
    {wire::Body::Bye, true, &Server::on_bye},
    {wire::Body::ListUpcoming, true, &Server::on_list_upcoming},
    {wire::Body::Push, true, &Server::on_push},
    {wire::Body::Claim, true, &Server::on_producer<wire::Claim>},
    {wire::Body::Produce, true, &Server::on_produce},
    {wire::Body::Abandon, true, &Server::on_producer<wire::Abandon>},
    {wire::Body::CloseProducer, true, &Server::on_producer<wire::CloseProducer>},
    {wire::Body::ListOutcomes, true, &Server::on_producer<wire::ListOutcomes>},
    {wire::Body::Advance, true, &Server::on_version<wire::Advance>},
    {wire::Body::AwaitVersion, true, &Server::on_version<wire::AwaitVersion>},
    {wire::Body::EndFeed, true, &Server::on_end_feed},
    {wire::Body::KeepFrom, true, &Server::on_keep_from},
};

const Server::Handler* Server::handler_of(wire::Body kind) {
  const auto* found = std::find_if(std::begin(kHandlers), std::end(kHandlers),
                                   [kind](const Handler& each) { return each.kind == kind; });
  return found != std::end(kHandlers) ? found : nullptr;
}

void Server::on_message(const Router::Incoming& incoming) {
  const PeerName& peer = incoming.peer;
  if (conduct_.ignores(peer)) {
    log_.count(Event::malformed_message);
    return;
  }
  if (incoming.frames == 0 || incoming.frames > 2) {
    return on_malformed(peer, fmt::format("{} frames; a message has one", incoming.frames));
  }
  const auto message = ControlMessage::decode(incoming.frame);
  if (!message) return on_malformed(peer, message.error().message);
  const auto* push = message->as<wire::Push>();
  if (incoming.frames != (push != nullptr && push->framed() ? 2U : 1U)) {
    return on_malformed(
        peer, fmt::format("{} frames; a message has one, a framed Push two", incoming.frames));
  }
  const EventLog::Turn part(log_, wire::EnumNameBody(message->kind()));
  const Handler* handler = handler_of(message->kind());
  Session* session = sessions_.find(peer);
  if (session == nullptr && (handler == nullptr || handler->in_session)) {
    refuse(peer, {ErrorCode::disconnected, "no session: Hello comes first"});
    static_cast<void>(bears_refusal(peer));
    return;
  }
  if (handler == nullptr) {
    return on_malformed(peer, fmt::format("a message that a client does not send: {}",
                                          wire::EnumNameBody(message->kind())));
  }
  (this->*handler->handle)({incoming, *message, session});
}

void Server::on_hello(const Received& received) {
  const auto& [incoming, message, old] = received;
  const auto& hello = *message.as<wire::Hello>();
  const PeerName& peer = incoming.peer;
  if (const auto admitted = admit(incoming, hello); !admitted) {
    return turn_away(peer, admitted.error());
  }
  if (old != nullptr) {
    if (!bears_refusal(peer)) return;
    close_session(old->id(), "it says Hello again");
  }
  if (const auto replaced = replace_earlier(incoming, hello.token()); !replaced) {
    return turn_away(peer, replaced.error());
  }
  if (const auto room = check_room(hello.produces()); !room) return turn_away(peer, room.error());
  const std::string program =
      hello.client() != nullptr ? program_name(hello.client()->string_view()) : "";
  Session newcomer;
  newcomer.client = {{},
                     hello.token(),
                     program,
                     hello.pid(),
                     hello.inline_batches(),
                     Abilities(hello.abilities()) & kAbilities,
                     hello.produces()};
  newcomer.peer = peer;
  newcomer.connection = connection_of(incoming.descriptor);
  if (peer.remote) newcomer.pulse.emplace(Clock::now());
  newcomer.user = credentials_of(incoming.peer_address);
  const Session& session = sessions_.add(std::move(newcomer));
  const SessionId id = session.id();
  log_.note<Event::client_connected>(id.value, program, hello.pid(),
                                     hello.inline_batches() ? ", without an arena" : "");
  welcome(session);
  if (hello.inline_batches()) return joined(session);
  // A client that never shows its sign of life could never be missed.
  sessions_.set_deadline(id, rules_.bind_time, [this, id] {
    close_session(id, "it did not connect to the arena socket");
  });
}

Result<void> Server::check_room(bool produces) const {
  const std::size_t all = sessions_.all().size();
  const std::size_t producers = sessions_.producers();
  const std::size_t same = produces ? producers : all - producers;
  if (same < (produces ? rules_.max_producers : rules_.max_clients)) return {};
  return Error{ErrorCode::does_not_fit, fmt::format("{} {} are connected, no more are allowed ({})",
                                                    same, produces ? "producers" : "clients",
                                                    produces ? "max_producers" : "max_clients")};
}

Result<void> Server::admit(const Router::Incoming& incoming, const wire::Hello& hello) const {
  if (hello.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("the client speaks protocol {}, this daemon ({}) speaks {}",
                             hello.protocol(), rules_.version, kProtocolVersion)};
  }
  if (!incoming.peer.remote)
    return listeners_.allowed().check(credentials_of(incoming.peer_address));
  if (hello.inline_batches()) return {};
  return Error{ErrorCode::invalid_argument,
               "over tcp:// there is no arena: Hello has to ask for inline_batches"};
}

/// A client that is back has noticed its loss before we did. It comes the same way and as the same
/// user: a token is no secret, for the ledger shows it.
Result<void> Server::replace_earlier(const Router::Incoming& incoming, std::uint64_t token) {
  Session* earlier = sessions_.find_token(token);
  if (earlier == nullptr) return {};
  const auto user = credentials_of(incoming.peer_address);
  const bool is_other_user = user && earlier->user && *user != *earlier->user;
  if (earlier->peer.remote != incoming.peer.remote || is_other_user) {
    return Error{ErrorCode::invalid_argument, "the token of this Hello is another client's"};
  }
  earlier->returning = true;
  close_session(earlier->id(), "its client is back");
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
  PeerLimiter& peers = conduct_.of(peer, Clock::now());
  peers.refused(Clock::now());
  if (!peers.is_over_limit()) return true;
  stop_listening_to(peer);
  return false;
}

void Server::stop_listening_to(const PeerName& peer) {
  log_.note<Event::client_ignored>();
  refuse(peer, {ErrorCode::invalid_argument,
                "too many rejected requests; this connection is no longer answered"});
  send(peer, encode(wire::ByeT{}));
  if (const Session* session = sessions_.find(peer))
    close_session(session->id(), "too many rejected requests");
}

void Server::welcome(const Session& session) {
  wire::WelcomeT answer;
  answer.protocol = kProtocolVersion;
  answer.version = rules_.version;
  answer.session = session.id().value;
  answer.arena_socket = listeners_.arena_path_for(session.peer);
  answer.events = listeners_.events_for(session.peer);
  answer.abilities = kAbilities.bits();
  std::size_t category_bytes = 0;
  for (const auto& feed : feeds()) {
    answer.feeds.push_back(std::make_unique<wire::FeedInfoT>(feed->info()));
    for (auto& field : answer.feeds.back()->fields) {
      for (const std::string& name : field->categories) category_bytes += name.size() + 16;
      // Names by the ten thousand do not fit a message; the values themselves are unharmed.
      if (category_bytes > kMaxControlBytes / 2) field->categories.clear();
    }
  }
  for (const UnavailableFeed& feed : unavailable_.all()) {
    auto absent = std::make_unique<wire::AbsentFeedT>();
    absent->name = feed.name;
    absent->why = feed.why.message;
    answer.absent.push_back(std::move(absent));
  }
  send(session.peer, encode(std::move(answer)));
}

void Server::on_release(const Received& received) {
  const auto& release = *received.message.as<wire::Release>();
  const SessionId session = received.session->id();
  const SubscriptionKey key{session, SubscriptionNumber{release.subscription()}};
  if (Feed* feed = feeds_.find(key)) return feed->release(session, release);
  unavailable_.pending().release(key, from_wire(release.leases()));
}

void Server::on_unsubscribe(const Received& received) {
  const SubscriptionNumber subscription{received.message.as<wire::Unsubscribe>()->subscription()};
  const SessionId session = received.session->id();
  for (const auto& feed : feeds()) feed->unsubscribe(session, subscription);
  unavailable_.pending().remove({session, subscription});
}

void Server::on_ask(const Received& received) {
  const auto& question = *received.message.as<wire::Ask>();
  const SessionId session = received.session->id();
  for (const auto& feed : feeds()) feed->ask(session, question);
  const SubscriptionKey key{session, SubscriptionNumber{question.subscription()}};
  unavailable_.pending().note_question(key);
  const UnavailableFeed* feed = unavailable_.awaited_by(key);
  if (feed != nullptr && !question.quiet()) tell_reason(key, feed->told());
}

void Server::on_subscribe(const Received& received) {
  const Session& session = *received.session;
  const auto& request = *received.message.as<wire::Subscribe>();
  if (auto done = subscribe(session, request); !done) {
    refuse_subscription(session, SubscriptionNumber{request.subscription()}, done.error());
  }
}

void Server::on_list_upcoming(const Received& received) {
  const auto& question = *received.message.as<wire::ListUpcoming>();
  const SessionId session = received.session->id();
  const SubscriptionKey key{session, SubscriptionNumber{question.subscription()}};
  if (Feed* feed = feeds_.find(key)) return feed->list_upcoming(session, question);
  wire::UpcomingT nothing;
  nothing.subscription = question.subscription();
  nothing.question = question.question();
  send(received.session->peer, encode(std::move(nothing)));
}

void Server::on_bye(const Received& received) {
  received.session->leaving = true;
  close_session(received.session->id(), "it says Bye");
}

/// A program that tries again and again may do so for a good reason, and holds batches of other
/// feeds meanwhile: its session stays, and the answers come slower. Only a program that does not
/// wait for them loses it.
void Server::refuse_subscription(const Session& session, SubscriptionNumber subscription,
                                 const Error& error) {
  const PeerName peer = session.peer;
  log_.note<Event::subscription_refused>(session.id().value, error.message);
  PeerLimiter& peers = conduct_.of(peer, Clock::now());
  if (peers.try_charge(Clock::now())) return refuse(peer, error, subscription);
  if (late_answers_.add(session.id(), {subscription, error})) return;
  peers.refused(Clock::now());
  stop_listening_to(peer);
}

Result<void> Server::subscribe(const Session& session, const wire::Subscribe& request) {
  if (!session.is_reachable()) {
    return Error{ErrorCode::invalid_argument, "connect to the arena socket first"};
  }
  if (session.client.produces) {
    return Error{ErrorCode::invalid_argument, "this session produces; subscribe in another"};
  }
  if (unavailable_.lets_wait()) put_away_failed();  // it may have failed in this turn
  Feed* feed = feeds_.find(request.feed()->string_view());
  const UnavailableFeed* absent = unavailable_.find(request.feed()->string_view());
  if (feed == nullptr && absent == nullptr) {
    return Error{ErrorCode::not_found, fmt::format("no feed \"{}\"; this daemon serves: {}",
                                                   request.feed()->str(), feeds_.names())};
  }
  if (feeds_.find({session.id(), {request.subscription()}}) != nullptr) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken", request.subscription())};
  }
  if (feed == nullptr) return await_feed(session, request, *absent);
  return feed->subscribe(session.client, request);
}

Result<void> Server::await_feed(const Session& session, const wire::Subscribe& request,
                                const UnavailableFeed& feed) {
  if (auto in = unavailable_.let_wait(session.client, request, feed); !in) return in;
  log_.note<Event::subscription_waits>(feed.name, session.id().value, feed.why.message);
  tell_reason({session.id(), {request.subscription()}}, feed.told());
  return {};
}

void Server::on_malformed(const PeerName& peer, const std::string& what) {
  const std::uint32_t offences = conduct_.of(peer, Clock::now()).malformed();
  log_.note<Event::malformed_message>(offences, PeerLimiter::kMalformed, what);
  refuse(peer, {ErrorCode::malformed_message, what});
  if (offences < PeerLimiter::kMalformed) return;
  send(peer, encode(wire::ByeT{}));
  if (const Session* session = sessions_.find(peer))
    close_session(session->id(), "it sent malformed messages");
}

}  // namespace batchwright
