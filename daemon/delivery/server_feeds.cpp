// The set of feeds: how they are added, changed and removed.

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

/// The pause between two looks at feeds that are to be freed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

}  // namespace

Feed& Server::add_feed(FeedSettings settings, FeedResources resources) {
  const AbsentFeed* before = find_absent(settings.name);
  const bool had_arena = before != nullptr && before->arena;
  const ArenaNumber number = had_arena ? before->arena->next() : ArenaNumber{++last_feed_};
  feeds_.push_back(make_feed(number, std::move(settings), std::move(resources)));
  Feed& feed = *feeds_.back();
  std::erase_if(absent_, [&feed](const AbsentFeed& each) { return each.name == feed.name(); });
  if (listening_) feed.start();
  if (listening_) serve_guests(feed);
  return feed;
}

/// The new arena's number differs from the old one's in its upper bits only, so that clients unmap
/// the old one.
Feed& Server::replace_feed(FeedSettings settings, FeedResources resources, const std::string& why) {
  const auto place = std::find_if(feeds_.begin(), feeds_.end(), [&settings](const auto& feed) {
    return feed->name() == settings.name;
  });
  const ArenaNumber number = (*place)->arena_number().next();
  auto feed = make_feed(number, std::move(settings), std::move(resources));
  std::swap(*place, feed);
  retire(std::move(feed), {ErrorCode::disconnected, why});
  (*place)->start();
  return **place;
}

void Server::remove_feed(std::string_view name) {
  const Error removed{ErrorCode::not_found, "feed " + std::string(name) +
                                                " was removed from the configuration of "
                                                "the daemon"};
  std::erase_if(absent_, [name](const AbsentFeed& each) { return each.name == name; });
  refuse_guests(name, removed);
  const auto place = std::find_if(feeds_.begin(), feeds_.end(),
                                  [name](const auto& feed) { return feed->name() == name; });
  if (place == feeds_.end()) return;
  auto feed = std::move(*place);
  feeds_.erase(place);
  retire(std::move(feed), removed);
}

std::unique_ptr<Feed> Server::make_feed(ArenaNumber number, FeedSettings settings,
                                        FeedResources resources) {
  FeedPorts ports{loop_, planner_, assembler_, readahead_, settings_.assembly_threads, {}, {},
                  {},    memory_,  log_,       {}};
  ports.send = [this](SessionId session, const flatbuffers::DetachedBuffer& message) {
    send_to_session(session, message);
  };
  ports.send_batch = [this](SessionId session, const flatbuffers::DetachedBuffer& ticket,
                            std::span<const std::byte> batch, std::function<void()> sent) {
    send_batch(session, ticket, {batch, std::move(sent)});
  };
  ports.takes_over = [this] { return put_away_soon(); };
  ports.publish = [this](wire::EventT event) { publish(std::move(event)); };
  return std::make_unique<Feed>(number, std::move(settings), std::move(resources),
                                std::move(ports));
}

void Server::retire(std::unique_ptr<Feed> feed, const Error& error) {
  feed->retire(error);
  retired_.push_back(std::move(feed));
  if (retired_.size() == 1) free_retired();
}

/// Unmapping an arena takes long, and is left to the planning thread.
void Server::free_retired() {
  retired_timer_.expires_after(kBetweenLooks);
  retired_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    std::vector<std::shared_ptr<const void>> belongings;
    for (auto& feed : retired_) {
      if (!feed->at_rest()) continue;
      for (auto& each : feed->belongings()) belongings.push_back(std::move(each));
      feed.reset();
    }
    std::erase(retired_, nullptr);
    planner_.run([kept = std::move(belongings)]() mutable { kept.clear(); });
    if (!retired_.empty()) free_retired();
  });
}

void Server::set_allowed(AllowList allowed, std::optional<std::set<std::string>> authorized) {
  settings_.allowed = std::move(allowed);
  if (gatekeeper_ && authorized) gatekeeper_->authorize(std::move(*authorized));
}

Feed* Server::find_feed(std::string_view name) {
  const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                  [name](const auto& feed) { return feed->name() == name; });
  return found == feeds_.end() ? nullptr : found->get();
}

/// Also finds a feed that has just ended: a client that was granted it asks for its arena next, and
/// gets the reason after that.
Result<ArenaHandle> Server::find_arena(ArenaNumber number) const {
  for (const auto* feeds : {&feeds_, &retired_}) {
    for (const auto& feed : *feeds) {
      const Arena* arena = feed->find_arena(number);
      if (arena != nullptr) return ArenaHandle{arena->descriptor(), arena->bytes()};
    }
  }
  return Error{ErrorCode::not_found, "no arena " + std::to_string(number.value)};
}

}  // namespace batchwright
