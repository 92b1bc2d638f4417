#include "daemon/delivery/server.h"

#include <utility>

namespace batchwright {
namespace {

/// The pause between two late answers to a session.
constexpr std::chrono::seconds kLateAnswers{1};

}  // namespace

Server::Server(boost::asio::io_context& loop, ServerSettings settings)
    : loop_(loop),
      rules_{settings.version, settings.assembly_threads, settings.max_clients, settings.bind_time,
             settings.silence},
      feeds_(loop,
             [this](FeedShelf::Belongings belongings) {
               freeing_.put([kept = std::move(belongings)]() mutable { kept.clear(); });
             }),
      absent_(
          loop, settings.feed_grace,
          [this](const AbsentFeeds::Guest& guest, const Error& why) { refuse_guest(guest, why); }),
      works_(loop, rules_.assembly_threads, settings.assembly_copy, settings.manners),
      sessions_(loop),
      late_answers_(loop, kLateAnswers,
                    [this](SessionId id, const LateAnswers::Refusal& refusal) {
                      const Session* session = sessions_.find(id);
                      if (session != nullptr) {
                        refuse(session->peer, refusal.error, refusal.subscription);
                      }
                    }),
      alive_(loop, kAlive, [this] { return say_alive(); }),
      listeners_(loop, log_, std::move(settings), calls_of_listeners()) {
  log_.on_told([this](wire::EventT event) { listeners_.publish(std::move(event)); });
}

// Feeds and planner go after the listeners: what they note then is told to no client.
Server::~Server() { log_.on_told({}); }

Listeners::Calls Server::calls_of_listeners() {
  Listeners::Calls calls;
  calls.message = [this](const Router::Incoming& incoming) { on_message(incoming); };
  calls.arena.bind = [this](SessionId id) { return bind_session(id); };
  calls.arena.spoilt = [this](SessionId id, const std::string& why) { close_session(id, why); };
  calls.arena.lost = [this](SessionId id) { on_lost(id); };
  calls.arena.find = [this](ArenaNumber number) { return find_arena(number); };
  return calls;
}

Result<void> Server::listen() {
  if (auto open = listeners_.open(); !open) return open;
  feeds_.start();
  return {};
}

void Server::set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized) {
  listeners_.set_allowed(std::move(allowed), std::move(authorized));
}

void Server::say_goodbye() {
  for (const auto& [id, session] : sessions_.all()) send(session.peer, encode(wire::ByeT{}));
}

}  // namespace batchwright
