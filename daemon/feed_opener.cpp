#include "daemon/feed_opener.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>
#include <vector>

namespace batchwright {
namespace {

/// Feeds that are opened at the same time. More would share disk and processors, and need the
/// memory for making their first plans at once.
constexpr std::size_t kAtOnce = kFewThreads ? 1 : 4;
/// One that takes longer waits for something, and keeps no other from being begun.
constexpr std::chrono::seconds kSlow{5};
/// How long a reload waits for what is being opened.
constexpr std::chrono::seconds kGivenUp{10};

}  // namespace

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
  for (auto& [feed, each] : tries_) each.thread.request_stop();
}

void FeedOpener::begin() {
  const auto now = Clock::now();
  for (const FeedConfig& feed : reloader_.running().feeds) {
    server_.set_absent(being_opened(feed.served.name, feed.dataset));
    retries_.begin(feed.served.name, now);
  }
  try_due();
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
  // A feed that a reload took away is forgotten, and begins again should it come back.
  retries_.keep(configured);
  for (const UnavailableFeed& feed : server_.absent()) {
    // A feed that waits for its next try has had its reason reported.
    if (retries_.waits(feed.name)) continue;
    retries_.failed(feed.name, feed.why.message, now);
    server_.log().note<Event::feed_absent>(feed.name, feed.why.message);
  }
  arm();
}

void FeedOpener::arm() {
  const auto due = retries_.next();
  if (!due || stopped_) return;
  timer_.expires_at(std::max(*due, next_start(Clock::now())));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped_) try_due();
  });
}

/// When another try may begin, as far as those under way tell; each that ends arms again.
FeedOpener::Clock::time_point FeedOpener::next_start(Clock::time_point now) const {
  std::vector<Clock::time_point> young;
  for (const auto& [feed, each] : tries_) {
    if (each.of->began + kSlow > now) young.push_back(each.of->began + kSlow);
  }
  if (young.size() < kAtOnce) return now;
  return *std::min_element(young.begin(), young.end());
}

/// While a reload is prepared nothing is begun: it opens what is absent, too.
void FeedOpener::try_due() {
  const auto now = Clock::now();
  const auto names = retries_.due(now);
  const std::vector<FeedConfig>& feeds = reloader_.running().feeds;
  // In the order of the file, in which they claim memory.
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < feeds.size(); ++place) {
    if (std::find(names.begin(), names.end(), feeds[place].served.name) == names.end()) continue;
    // Put off, not failed: that it had to wait tells nothing of the feed, so its pause stays.
    if (reloader_.under_way()) {
      retries_.put_off(feeds[place].served.name, now);
    } else {
      places.push_back(place);
    }
  }
  // All of them, before the first asks whether any is above it.
  for (const std::size_t place : places) turns_.enter(place);
  for (const std::size_t place : places) {
    if (next_start(now) > now) break;
    open(feeds[place], place);
  }
  arm();
}

void FeedOpener::open(const FeedConfig& feed, std::size_t place) {
  const std::string& name = feed.served.name;
  const auto made = std::make_shared<Try>();
  made->feed = name;
  made->place = place;
  auto thread = start_thread(
      "bw-open", [this, &loop = loop_, &catalog = catalog_, &turns = turns_, feed, place,
                  memory = server_.share_memory(), made](const std::stop_token& stop) {
        made->made.emplace(prepare_one(feed, {memory, stop, &turns, place}, catalog));
        // Of one that is given up nothing stays: its journal and its memory may be needed.
        if (stop.stop_requested()) made->made.reset();
        made->over.release();
        boost::asio::post(loop, [this, made] { opened(*made); });
      });
  if (!thread) {
    turns_.leave(place);
    return not_opened(name, {ErrorCode::busy,
                             "no thread can be had to open it (ulimit -u, pids.max, TasksMax=)"});
  }
  retries_.trying(name);
  tries_.emplace(name, Running{made, std::move(*thread)});
}

void FeedOpener::opened(Try& made) {
  const EventLog::Turn turn(server_.log(), "the opening", made.feed);
  // Its thread has done all but end.
  const auto ended = tries_.extract(made.feed);
  if (made.given_up || !made.made) {
    retries_.put_off(made.feed, Clock::now());
    return arm();
  }
  Result<PreparedFeed> feed = std::move(*made.made);
  if (!feed) {
    not_opened(made.feed, feed.error());
  } else {
    static_cast<void>(feed->memory.release());  // its arena has them from here
    const auto took = retries_.served(made.feed, Clock::now());
    if (took) server_.log().note<Event::feed_returned>(made.feed, took->count());
    server_.add_feed(std::move(feed->settings), std::move(feed->resources));
    // Whichever was opened first: pages and clients show them as they are in the file.
    std::vector<std::string> names;
    for (const FeedConfig& each : reloader_.running().feeds) names.push_back(each.served.name);
    server_.arrange(names);
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

/// What was made is freed before the reload is prepared, which may need its journal and its memory.
/// One that does not end, for its disk does not answer, is not waited for any longer, and not begun
/// a second time.
void FeedOpener::give_up() {
  turns_.clear();
  std::vector<std::shared_ptr<Try>> given_up;
  for (auto& [feed, each] : tries_) {
    if (std::exchange(each.of->given_up, true)) continue;
    each.thread.request_stop();
    given_up.push_back(each.of);
  }
  if (given_up.empty()) return;
  reloader_.thread().put([given_up = std::move(given_up)] {
    const auto until = Clock::now() + kGivenUp;
    for (const auto& each : given_up) {
      if (each->over.try_acquire_until(until)) each->made.reset();
    }
  });
}

}  // namespace batchwright
