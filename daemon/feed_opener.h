#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/delivery/delivery.h"
#include "daemon/reload/reload.h"
#include "daemon/reload/retries.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// Opens the feeds that are absent, again and again until they are served: a dataset that comes
/// late, a disk that has room again, memory that clients of an earlier daemon give back. One at a
/// time, on the thread that prepares reloads, at the pace of Retries; a reload that begins ends
/// the try that is under way, for it opens absent feeds itself. A dataset that hangs (a network
/// file system whose server is away) holds up reloads and the feeds behind it, and nothing that is
/// served.
///
/// Lifetime: loop, catalog and reloader outlive it; the server all calls but destruction.
/// Threads: the event loop, or before it runs.
class FeedOpener {
 public:
  /// `changed` is called when a feed is served again, or has another reason why it is not.
  FeedOpener(boost::asio::io_context& loop, Catalog& catalog, Server& server, Reloader& reloader,
             std::function<void()> changed);
  ~FeedOpener() { stop(); }
  FeedOpener(const FeedOpener&) = delete;
  FeedOpener& operator=(const FeedOpener&) = delete;

  /// Looks which feeds are absent, or have failed for a reason that passes. To be called whenever
  /// that may have changed, and not from within a call of a feed.
  void look();
  /// Gives up what is being opened: the daemon ends.
  void stop();

 private:
  using Clock = Retries::Time::clock;

  /// One feed that is being opened. `made` belongs to the preparing thread until that reports, and
  /// again once the try is given up.
  struct Try {
    std::string feed;
    std::stop_source stop;
    bool given_up = false;  ///< The loop's.
    std::optional<Result<PreparedFeed>> made;
  };

  void arm();
  void try_due();
  void open(const FeedConfig& feed);
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
  std::shared_ptr<Try> trying_;  ///< Null: none is being opened.
  bool stopped_ = false;
};

}  // namespace batchwright
