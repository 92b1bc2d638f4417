// The set of feeds: how they are added, changed and removed, and what becomes of clients that wait
// for an absent one.

#include <fmt/core.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

}  // namespace

Feed& Server::add_feed(FeedSettings settings, FeedResources resources) {
  const UnavailableFeed* before = unavailable_.find(settings.name);
  const bool had_arena = before != nullptr && before->arena;
  const ArenaNumber number = had_arena ? number_after(*before->arena) : feeds_.new_number();
  auto made = make_feed(number, std::move(settings), std::move(resources));
  auto pending = unavailable_.take_out(made->name());
  Feed& feed = feeds_.add(std::move(made));
  for (auto& each : pending) serve_pending(feed, std::move(each));
  return feed;
}

/// The new arena's number differs from the old one's in its upper bits only, so that clients unmap
/// the old one.
Feed& Server::replace_feed(FeedSettings settings, FeedResources resources, const std::string& why) {
  const ArenaNumber number =
      number_after(feeds_.find(settings.name)->status(Clock::now(), Detail::without_clients).arena);
  return feeds_.replace(make_feed(number, std::move(settings), std::move(resources)),
                        {ErrorCode::disconnected, why});
}

/// A feed that has had all the numbers it can have goes on as a new one.
ArenaNumber Server::number_after(ArenaNumber number) {
  const auto next = number.next();
  return next ? *next : feeds_.new_number();
}

void Server::remove_feed(std::string_view name) {
  const Error removed{
      ErrorCode::not_found,
      fmt::format("feed {} was removed from the configuration of the daemon", name)};
  for (const auto& pending : unavailable_.take_out(name)) refuse_pending(pending, removed);
  feeds_.retire(name, removed);
}

std::unique_ptr<Feed> Server::make_feed(ArenaNumber number, FeedSettings settings,
                                        FeedResources resources) {
  FeedPorts ports{loop_,
                  works_.planner(),
                  works_.assembler(),
                  works_.readahead(),
                  rules_.assembly_threads,
                  {},
                  {},
                  memory_,
                  log_,
                  {}};
  ports.send = [this](SessionId session, const flatbuffers::DetachedBuffer& message) {
    send_to_session(session, message);
  };
  ports.send_batch = [this](SessionId session, const flatbuffers::DetachedBuffer& ticket,
                            std::span<const std::byte> batch, std::function<void()> sent) {
    send_batch(session, ticket, {batch, std::move(sent)});
  };
  ports.rows_of = [this](const std::string& name, const Fingerprint& of) {
    return rows_of(name, of);
  };
  ports.takes_over = [this] { return put_away_soon(); };
  return std::make_unique<Feed>(number, std::move(settings), std::move(resources),
                                std::move(ports));
}

/// With the last of them a dataset may end, which waits for its file system: that is left to
/// another thread.
Result<std::shared_ptr<const StoredRows>> Server::rows_of(const std::string& name,
                                                          const Fingerprint& of) {
  const Feed* feed = feeds_.find(name);
  if (feed == nullptr) {
    const UnavailableFeed* absent = unavailable_.find(name);
    if (absent != nullptr) return absent->told();
    return Error{ErrorCode::not_found,
                 fmt::format("no feed \"{}\"; this daemon serves: {}", name, feeds_.names())};
  }
  auto found = feed->rows_of(of);
  if (!found) return found;
  const StoredRows* const rows = found->get();
  auto let_go = [this, kept = *std::move(found)](const StoredRows*) mutable {
    if (kept.use_count() > 1) return kept.reset();
    freeing_.put([last = std::move(kept)]() mutable { last.reset(); });
  };
  return std::shared_ptr<const StoredRows>(rows, std::move(let_go));
}

/// Its arena is given back before another one is made in its place.
void Server::put_away_failed() {
  std::vector<FeedStatus> failed;
  for (const auto& feed : feeds_.all()) {
    FeedStatus status = feed->status(Clock::now(), Detail::without_clients);
    if (status.failure && is_transient(status.failure->code)) failed.push_back(std::move(status));
  }
  for (const FeedStatus& feed : failed) {
    Error why = *feed.failure;
    const std::string named = fmt::format("feed {} failed: ", feed.name);
    if (why.message.starts_with(named)) why.message.erase(0, named.size());
    put_away(feed, why, *feed.failure);
  }
}

void Server::put_away(std::string_view name, const Error& why) {
  const Feed* feed = feeds_.find(name);
  if (feed == nullptr) return;
  put_away(feed->status(Clock::now(), Detail::without_clients), why,
           {why.code, fmt::format("feed {}: {}", name, why.message)});
}

void Server::put_away(const FeedStatus& feed, const Error& why, const Error& told) {
  unavailable_.set({feed.name, feed.dataset, why, feed.arena});
  // Clients treat `disconnected` as a pause: they ask again, and then wait.
  feeds_.retire(feed.name,
                unavailable_.lets_wait() ? Error{ErrorCode::disconnected, told.message} : told);
}

bool Server::put_away_soon() {
  if (!unavailable_.lets_wait()) return false;
  boost::asio::post(loop_, [this] { put_away_failed(); });
  return true;
}

/// A client that waited for a feed that is there now.
void Server::serve_pending(Feed& feed, UnavailableFeeds::Pending pending) {
  const auto bytes = encode(wire::SubscribeT(std::move(pending.request)));
  const auto message =
      ControlMessage::decode({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  const auto* request = message ? message->as<wire::Subscribe>() : nullptr;
  if (request == nullptr) return;  // it was one when it came
  if (auto done = feed.subscribe(pending.client, *request); !done) {
    pending.request.subscription = request->subscription();
    refuse_pending(pending, done.error());
  } else if (pending.said_so) {
    feed.waits({pending.client.session, {request->subscription()}}, 0);
  }
}

void Server::refuse_pending(const UnavailableFeeds::Pending& pending, const Error& why) {
  const Session* session = sessions_.find(pending.client.session);
  if (session == nullptr) return;
  log_.note<Event::subscription_refused>(pending.client.session.value, why.message);
  refuse(session->peer, why, SubscriptionNumber{pending.request.subscription});
}

Result<ArenaHandle> Server::find_arena(SessionId session, ArenaNumber number) const {
  for (const auto& feed : feeds()) {
    if (!number.is_area()) break;
    const ProducerArea* area = feed->find_area(session, number);
    if (area != nullptr) return ArenaHandle{area->descriptor(), area->bytes().size()};
  }
  const Arena* arena = feeds_.find_arena(number);
  if (arena == nullptr) {
    return Error{ErrorCode::not_found, fmt::format("no arena {}", number.value)};
  }
  return ArenaHandle{arena->descriptor(), arena->bytes()};
}

}  // namespace batchwright
