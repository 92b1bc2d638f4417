#include "daemon/feed_opener.h"

#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "daemon/reload/reload_prepare.h"

namespace batchwright {

FeedOpener::FeedOpener(boost::asio::io_context& loop, Catalog& catalog, Server& server,
                       Reloader& reloader, std::function<void()> changed)
    : loop_(loop),
      catalog_(catalog),
      server_(server),
      reloader_(reloader),
      changed_(std::move(changed)),
      timer_(loop) {
  // A reload opens absent feeds itself, and may need the same journal and memory.
  reloader_.on_begin([this] { give_up(); });
}

void FeedOpener::stop() {
  stopped_ = true;
  timer_.cancel();
  // The try itself ends on the reloader's thread, which the reloader joins.
  if (trying_) trying_->stop.request_stop();
}

void FeedOpener::look() {
  // First, so that what has failed since the last look is among absent() below.
  server_.put_away_failed();
  const auto now = Clock::now();
  std::set<std::string> configured;
  for (const FeedConfig& feed : reloader_.running().feeds) {
    configured.insert(feed.served.name);
    if (server_.find_feed(feed.served.name) != nullptr) retries_.served(feed.served.name, now);
  }
  // A feed that a reload took away is forgotten, and begins anew should it come back.
  retries_.keep(configured);
  for (const AbsentFeed& feed : server_.absent()) {
    // A feed that waits for its next try has had its reason reported.
    if (retries_.waits(feed.name)) continue;
    retries_.failed(feed.name, feed.why.message, now);
    server_.log().note<Event::feed_absent>(feed.name, feed.why.message);
  }
  arm();
}

void FeedOpener::arm() {
  const auto next = retries_.next();
  // One at a time: opened() arms again, and after a reload look() does.
  if (!next || trying_ || stopped_) return;
  timer_.expires_at(*next);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !trying_ && !stopped_) try_due();
  });
}

/// While a reload is prepared nothing is begun: it opens what is absent, too.
void FeedOpener::try_due() {
  const auto now = Clock::now();
  for (const std::string& name : retries_.due(now)) {
    const FeedConfig* feed = find_feed(reloader_.running(), name);
    if (feed != nullptr && !reloader_.under_way()) return open(*feed);
    // Put off, not failed: that it had to wait tells nothing of the feed, so its pause stays.
    retries_.put_off(name, now);
  }
  arm();
}

/// The thread outlives this object, and the loop's handlers do not run after it.
void FeedOpener::open(const FeedConfig& feed) {
  trying_ = std::make_shared<Try>();
  trying_->feed = feed.served.name;
  reloader_.thread().put([this, &loop = loop_, &catalog = catalog_, feed,
                          memory = server_.share_memory(), made = trying_] {
    made->made.emplace(prepare_one(feed, {memory, made->stop.get_token()}, catalog));
    boost::asio::post(loop, [this, made] {
      if (!made->given_up) opened(*made);
    });
  });
}

void FeedOpener::opened(Try& made) {
  const std::string name = made.feed;
  Result<PreparedFeed> feed = std::move(*made.made);
  // Before what follows leads to arm(), which begins nothing while a try is under way.
  trying_.reset();
  if (!feed) {
    not_opened(name, feed.error());
  } else {
    static_cast<void>(feed->memory.release());  // its arena has them from here
    const auto took = retries_.served(name, Clock::now());
    server_.log().note<Event::feed_returned>(name, took.count());
    server_.add_feed(std::move(feed->settings), std::move(feed->resources));
  }
  changed_();
  arm();
}

void FeedOpener::not_opened(const std::string& name, const Error& why) {
  // One event for each new reason: a feed that stays absent for days does not fill the log.
  if (retries_.failed(name, why.message, Clock::now())) {
    server_.log().note<Event::feed_absent>(name, why.message);
  }
  const FeedConfig* feed = find_feed(reloader_.running(), name);
  // Readiness, /stats and clients that are refused have the reason from there.
  if (feed != nullptr) server_.set_absent({name, feed->dataset, why});
}

/// What was made is freed before the reload is prepared, on the same thread: its journal and its
/// memory may be needed there.
void FeedOpener::give_up() {
  if (!trying_) return;
  trying_->given_up = true;
  trying_->stop.request_stop();
  retries_.put_off(trying_->feed, Clock::now());
  reloader_.thread().put([made = std::move(trying_)] { made->made.reset(); });
  trying_.reset();
}

}  // namespace batchwright
