#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

#include "daemon/delivery/delivery.h"
#include "daemon/reload/reload.h"
#include "daemon/reload/reload_prepare.h"
#include "daemon/reload/retries.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// Opens the feeds: all of them at the start, and those that are absent again and again until they
/// are served, at the pace of Retries: a dataset that comes late, a disk that has room again,
/// memory that others give back. Each is opened on a thread of its own, a few at a time, so that
/// one whose disk is slow, or does not answer, holds up no other. A reload that begins ends the
/// tries that are under way, for it opens absent feeds itself.
///
/// Lifetime: loop, catalog and reloader outlive it; the server all calls but destruction.
///   Destruction waits for the tries that are under way.
/// Threads: the event loop, or before it runs.
class FeedOpener {
 public:
  /// `changed` is called when a feed is served, or has another reason why it is not.
  FeedOpener(boost::asio::io_context& loop, Catalog& catalog, Server& server, Reloader& reloader,
             std::function<void()> changed);
  ~FeedOpener() { stop(); }
  FeedOpener(const FeedOpener&) = delete;
  FeedOpener& operator=(const FeedOpener&) = delete;

  /// Begins to open every feed of the configuration that runs.
  void begin();
  /// Looks which feeds are absent, or have failed for a reason that passes. To be called whenever
  /// that may have changed, and not from within a call of a feed.
  void look();
  /// Gives up what is being opened: the daemon ends.
  void stop();

 private:
  using Clock = Retries::Time::clock;

  /// One feed that is being opened. `made` belongs to the thread until that reports.
  struct Try {
    std::string feed;
    std::size_t place = 0;  ///< In the file.
    Clock::time_point began = Clock::now();
    bool given_up = false;  ///< The loop's: no call waits for the outcome.
    std::optional<Result<PreparedFeed>> made = {};
    std::binary_semaphore over{0};  ///< The thread has let go of `made`.
  };
  struct Running {
    std::shared_ptr<Try> of;
    std::jthread thread;
  };

  void arm();
  Clock::time_point next_start(Clock::time_point now) const;
  void try_due();
  void open(const FeedConfig& feed, std::size_t place);
  void opened(Try& made);
  void not_opened(const std::string& name, const Error& why);
  void give_up();

  boost::asio::io_context& loop_;
  Catalog& catalog_;
  Server& server_;
  Reloader& reloader_;
  std::function<void()> changed_;
  Retries retries_;
  boost::asio::steady_timer timer_;
  MemoryTurns turns_;
  std::map<std::string, Running> tries_;  ///< By feed; those that were given up, too.
  bool stopped_ = false;
};

}  // namespace batchwright
