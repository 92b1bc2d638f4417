#include "daemon/reload/reload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/reload/reload_prepare.h"
#include "daemon/reload/room_settings.h"

namespace batchwright {
namespace {

/// How long file systems have to say what has become of the datasets that are read.
constexpr std::chrono::seconds kPatience{2};

/// The current time, in seconds since 1970.
double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_unchanged(const ConfigChanges& changes, const std::string& name) {
  return std::none_of(changes.changed.begin(), changes.changed.end(),
                      [&name](const FeedChange& change) { return change.name == name; });
}

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
  if (!ready.mended.empty()) {
    parts.push_back(fmt::format("opened anew {}", fmt::join(ready.mended, ", ")));
  }
  // A feed that was opened again with the same keys is among the unchanged, and is told once.
  std::size_t unchanged = changes.unchanged;
  for (const std::string& name : ready.mended) unchanged -= is_unchanged(changes, name) ? 1 : 0;
  for (const auto& [name, why] : ready.stale) {
    parts.push_back(fmt::format("{} is opened anew: {}", name, why));
    unchanged -= is_unchanged(changes, name) ? 1 : 0;
  }
  parts.push_back(fmt::format("{} unchanged", unchanged));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Reloader::Reloader(boost::asio::io_context& loop, Catalog& catalog, Server& server,
                   std::function<void()> done)
    : loop_(loop), catalog_(catalog), server_(server), done_(std::move(done)) {}

Reloader::~Reloader() {
  // Preparing gives up at its next step; what has not begun is dropped.
  stop();
  thread_.drop();
}

void Reloader::set_running(ConfigSource source, Config running) {
  source_ = std::move(source);
  running_ = std::move(running);
  stats_.taken_unix_seconds = unix_seconds();
}

void Reloader::begin(Told told) {
  if (under_way_) {
    // However many ask meanwhile: one more reload reads all that they can have changed.
    once_more_ = true;
    if (told) to_tell_next_.push_back(std::move(told));
    return;
  }
  if (told) to_tell_.push_back(std::move(told));
  start();
}

void Reloader::start() {
  under_way_ = true;
  once_more_ = false;
  server_.log().note<Event::reload_began>(source_.file.string());
  // systemd waits from here until READY=1, which Daemon::reloaded() owes it.
  notify_reloading();
  if (on_begin_) on_begin_();
  // Asked at once, each on a thread of its feed: one that does not answer is left as it is.
  const auto looks = std::make_shared<Looks>(loop_);
  looks->missing = server_.feeds().size();
  for (const auto& feed : server_.feeds()) {
    feed->ask_standing([this, looks, name = feed->name()](DatasetStanding found) {
      if (looks->is_over) return;
      looks->found.emplace(name, std::move(found));
      if (--looks->missing == 0) prepare(*looks);
    });
  }
  if (looks->missing == 0) return prepare(*looks);
  looks->patience.expires_after(kPatience);
  looks->patience.async_wait([this, looks](const boost::system::error_code& error) {
    if (!error && !looks->is_over) prepare(*looks);
  });
}

void Reloader::prepare(Looks& looks) {
  looks.is_over = true;
  looks.patience.cancel();
  // A copy of the state: the preparing thread touches nothing that the loop changes.
  ReloadRequest request{
      source_,          running_, {}, {}, server_.feed_numbers_left(), server_.share_memory(),
      stop_.get_token()};
  for (const FeedStatus& feed : server_.status(Clock::now(), Detail::without_clients).feeds) {
    if (feed.failure || feed.retried) request.failed.insert(feed.name);
    if (feed.retried || feed.dataset.empty() || looks.found.contains(feed.name)) continue;
    server_.log().note<Event::dataset_silent>(feed.name, feed.dataset.front().string(),
                                              kPatience.count());
  }
  request.standing = std::move(looks.found);
  thread_.put([this, request = std::move(request)] {
    auto result = std::make_shared<Result<PreparedConfig>>(prepare_reload(request, catalog_));
    boost::asio::post(loop_, [this, result] { prepared(std::move(*result)); });
  });
}

void Reloader::prepared(Result<PreparedConfig> result) {
  const EventLog::Turn turn(server_.log(), "a reload");
  under_way_ = false;
  last_ = Clock::now();
  const Outcome outcome = result ? take_up(std::move(*result)) : refuse(result.error());
  // systemd hears before the callers do: one that asks it next finds the new state.
  done_();
  // Those that asked while it was under way may have changed the file after it was read.
  for (const Told& told : std::exchange(to_tell_, std::exchange(to_tell_next_, {}))) told(outcome);
  if (once_more_) start();
}

/// Nothing here can fail.
Reloader::Outcome Reloader::take_up(PreparedConfig ready) {
  // Before `ready` is taken apart.
  const std::string told = describe(ready);
  for (const std::string& name : ready.changes.removed) server_.remove_feed(name);
  for (PreparedFeed& feed : ready.feeds) serve(std::move(feed));
  for (const auto& [name, why] : ready.stale) {
    server_.put_away(name, {ErrorCode::store_unavailable, why});
  }
  for (const FeedConfig& feed : ready.config.feeds) {
    Feed* running = server_.find_feed(feed.served.name);
    if (running == nullptr) continue;  // it is absent
    // To all, changed or not: the same values change nothing.
    running->adjust(feed.served);
  }
  server_.set_allowed(std::move(ready.allowed), std::move(ready.authorized));
  // All keys of [daemon] that apply in place: with one more this does not compile until it is taken
  // up here. The accounts' numbers have been asked for, and the queues' grace went to the feeds.
  const auto& [users, groups, queue_grace, feed_grace, log_level, log_format] =
      static_cast<const DaemonAdjustments&>(ready.config.daemon);
  server_.set_feed_grace(feed_grace);
  set_logging(log_level, log_format);
  running_ = std::move(ready.config);
  ++stats_.applied;
  stats_.taken_unix_seconds = unix_seconds();
  stats_.last_refusal.reset();
  server_.log().note<Event::reload_applied>(told);
  note_absent(ready.still_failed);
  return {true, told};
}

void Reloader::serve(PreparedFeed feed) {
  static_cast<void>(feed.memory.release());  // its arena has them from here
  if (server_.find_feed(feed.settings.name) == nullptr) {
    server_.add_feed(std::move(feed.settings), std::move(feed.resources));
  } else {
    server_.replace_feed(std::move(feed.settings), std::move(feed.resources), feed.why);
  }
}

void Reloader::note_absent(const std::map<std::string, Error>& feeds) {
  for (const auto& [name, why] : feeds) {
    server_.log().note<Event::reload_left_failed>(name, why.message);
    // One that failed and is still there keeps its own reason.
    if (server_.find_feed(name) != nullptr) continue;
    server_.set_absent({name, find_feed(running_, name)->dataset, why});
  }
}

Reloader::Outcome Reloader::refuse(const Error& error) {
  ++stats_.refused;
  stats_.last_refusal = error.message;
  std::string line;
  // The log, and a caller at the door, take one line; a file may have several faults.
  for (const char c : error.message) line += c == '\n' ? std::string("; ") : std::string(1, c);
  server_.log().note<Event::reload_refused>(line);
  return {false, line};
}

ReloadStats Reloader::stats() const {
  ReloadStats stats = stats_;
  if (last_) stats.last_ago = Clock::now() - *last_;
  return stats;
}

}  // namespace batchwright
