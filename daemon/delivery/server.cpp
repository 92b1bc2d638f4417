#include "daemon/delivery/server.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <utility>

namespace batchwright {
namespace {

/// The pause between two late answers to a session.
constexpr std::chrono::seconds kLateAnswers{1};

/// A client that waits for a feed that is absent.
SubscriberStatus guest_status(const PendingSubscriptions::Pending& pending,
                              WaitingTimes::Time now) {
  const wire::SubscribeT& request = pending.request;
  SubscriberStatus status;
  status.session = pending.client.session;
  status.subscription = {request.subscription};
  status.client = pending.client.program;
  status.pid = pending.client.pid;
  status.mode = request.mode;
  status.rank = request.rank;
  status.ranks = request.ranks;
  status.epoch = Epoch{request.epoch};
  status.step = Step{request.step};
  status.window = request.window;
  status.waited_for_daemon_seconds = std::chrono::duration<double>(now - pending.since).count();
  status.waiting = WaitingFor::daemon;
  return status;
}

FeedStatus absent_status(const UnavailableFeed& feed) {
  FeedStatus status;
  status.name = feed.name;
  status.dataset = feed.dataset;
  status.state = feed.opening ? FeedState::starting : FeedState::failed;
  status.retried = true;
  // In the words that its clients are told.
  status.reason = feed.told().message;
  status.not_ready = feed.opening ? feed.why.message : "not served: " + feed.why.message;
  status.pinned = to_string(PinState::none);
  status.pages = to_string(PageKind::small);
  status.verdict = feed.opening ? Verdict{Bound::idle, status.reason}
                                : Verdict{Bound::failed, "the feed is not served, see its reason"};
  return status;
}

ReadaheadStats readahead_stats(const ReadaheadFigures& figures) {
  ReadaheadStats stats{figures.ahead_bytes, figures.kept_bytes, 0.0, {}};
  for (const DiskFigures& disk : figures.disks) {
    stats.disks.push_back({fmt::format("{}:{}", major(disk.device), minor(disk.device)),
                           disk.under_way_bytes, disk.window_bytes, disk.bytes_per_second,
                           disk.latency.count()});
  }
  return stats;
}

}  // namespace

Server::Server(boost::asio::io_context& loop, ServerSettings settings)
    : loop_(loop),
      rules_{settings.version,       settings.assembly_threads, settings.max_clients,
             settings.max_producers, settings.bind_time,        settings.silence},
      feeds_(loop,
             [this](FeedRegistry::Resources resources) {
               freeing_.put([kept = std::move(resources)]() mutable { kept.clear(); });
             }),
      unavailable_(loop, settings.feed_grace,
                   [this](const UnavailableFeeds::Pending& pending, const Error& why) {
                     refuse_pending(pending, why);
                   }),
      works_(loop, rules_.assembly_threads, settings.assembly_copy, settings.policy),
      sessions_(loop),
      late_answers_(loop, kLateAnswers,
                    [this](SessionId id, const DelayedReplies::Refusal& refusal) {
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
  calls.arena.find = [this](SessionId session, ArenaNumber number) {
    return find_arena(session, number);
  };
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

ServerStatus Server::status(WaitingTimes::Time now, Detail detail) const {
  ServerStatus status;
  status.feeds.reserve(feeds_.all().size() + unavailable_.all().size());
  for (const auto& feed : feeds_.all()) status.feeds.push_back(feed->status(now, detail));
  for (const UnavailableFeed& feed : unavailable_.all()) {
    FeedStatus& absent = status.feeds.emplace_back(absent_status(feed));
    if (detail == Detail::without_clients) continue;
    for (const PendingSubscriptions::Pending* pending :
         unavailable_.pending().waiting_for(feed.name)) {
      absent.subscribers.push_back(guest_status(*pending, now));
    }
  }
  for (const auto& [id, session] : sessions_.all()) {
    if (detail == Detail::without_clients) break;
    status.sessions.push_back({id, session.client.abilities});
  }
  status.memory_left_bytes = memory_->left();
  status.assembly_threads = rules_.assembly_threads;
  status.copy = works_.assembler().copies().name();
  status.readahead = readahead_stats(works_.readahead().figures());
  return status;
}

}  // namespace batchwright
