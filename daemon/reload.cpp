#include "daemon/reload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

#include "daemon/notify.h"
#include "daemon/reload_prepare.h"
#include "daemon/room_settings.h"

namespace batchwright {
namespace {

std::string describe(const PreparedConfig& ready) {
  const ConfigChanges& changes = ready.changes;
  std::vector<std::string> parts;
  if (!changes.added.empty()) {
    parts.push_back(fmt::format("added {}", fmt::join(changes.added, ", ")));
  }
  if (!changes.removed.empty()) {
    parts.push_back(fmt::format("removed {}", fmt::join(changes.removed, ", ")));
  }
  for (const FeedChange& change : changes.changed) {
    parts.push_back(fmt::format("{} {} ({})", change.in_place ? "adjusted" : "replaced",
                                change.name, change.keys));
  }
  parts.push_back(fmt::format("{} unchanged", changes.unchanged));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Reloader::Reloader(boost::asio::io_context& loop, Catalog& catalog, Server& server,
                   std::function<void()> done)
    : loop_(loop), catalog_(catalog), server_(server), done_(std::move(done)) {}

Reloader::~Reloader() {
  stop();
  thread_.stop();
  thread_.join();
}

void Reloader::set_running(std::filesystem::path file, Config running) {
  file_ = std::move(file);
  running_ = std::move(running);
}

void Reloader::begin() {
  once_more_ = under_way_;
  if (std::exchange(under_way_, true)) return;
  server_.log().note<Event::reload_began>(file_.string());
  notify_reloading();
  ReloadRequest request{
      file_, running_, {}, server_.feed_numbers_left(), server_.share_memory(), stop_.get_token()};
  for (const auto& feed : server_.feeds()) {
    if (feed->failure()) request.failed.insert(feed->name());
  }
  boost::asio::post(thread_, [this, request = std::move(request)] {
    auto result = std::make_shared<Result<PreparedConfig>>(prepare_reload(request, catalog_));
    boost::asio::post(loop_, [this, result] { prepared(std::move(*result)); });
  });
}

void Reloader::prepared(Result<PreparedConfig> result) {
  under_way_ = false;
  last_ = Clock::now();
  if (result) {
    take_up(std::move(*result));
  } else {
    refuse(result.error());
  }
  done_();
  if (once_more_) begin();
}

/// Nothing here can fail.
void Reloader::take_up(PreparedConfig ready) {
  const std::string told = describe(ready);
  for (const std::string& name : ready.changes.removed) server_.remove_feed(name);
  for (PreparedFeed& feed : ready.feeds) {
    feed.memory.release();  // its arena has them from here
    if (server_.find_feed(feed.settings.name) == nullptr) {
      server_.add_feed(std::move(feed.settings), std::move(feed.resources));
    } else {
      server_.replace_feed(std::move(feed.settings), std::move(feed.resources), feed.why);
    }
  }
  for (const FeedConfig& feed : ready.config.feeds) {
    Feed* running = server_.find_feed(feed.name);
    if (running == nullptr) continue;  // the start was cut short
    running->adjust(feed_settings(feed, ready.config.daemon.queue_grace));
  }
  server_.set_allowed(std::move(ready.allowed), std::move(ready.authorized));
  set_log_level(ready.config.daemon.log_level);
  running_ = std::move(ready.config);
  ++stats_.applied;
  stats_.last_refusal.reset();
  server_.log().note<Event::reload_applied>(told);
  for (const std::string& failed : ready.still_failed) {
    server_.log().note<Event::reload_left_failed>(failed);
  }
}

void Reloader::refuse(const Error& error) {
  ++stats_.refused;
  stats_.last_refusal = error.message;
  std::string line;
  for (const char c : error.message) line += c == '\n' ? std::string("; ") : std::string(1, c);
  server_.log().note<Event::reload_refused>(line);
}

ReloadStats Reloader::stats() const {
  ReloadStats stats = stats_;
  if (last_) stats.last_ago = Clock::now() - *last_;
  return stats;
}

}  // namespace batchwright
