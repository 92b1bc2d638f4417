#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/config/config.h"
#include "daemon/delivery/delivery.h"
#include "daemon/stats/stats.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// A feed that is ready to be served, and the memory that its arena takes.
struct PreparedFeed {
  FeedSettings settings;
  FeedResources resources;
  MemoryClaim memory;
  std::string why;  ///< The reason given to clients of the feed that it replaces.
};

/// All that a new configuration needs, so that taking it up cannot fail.
struct PreparedConfig {
  Config config;
  ConfigChanges changes;
  AllowList allowed;
  std::optional<std::set<std::string>> authorized;
  std::vector<PreparedFeed> feeds;            ///< Added and replaced.
  std::vector<std::string> mended;            ///< Those of them that had failed.
  std::map<std::string, Error> still_failed;  ///< Feeds that could not be mended, and why.
  /// Feeds whose dataset is another by now, and in what way. They are put away, and opened again
  /// once nothing reads the old files: a process has those of one folder open once.
  std::map<std::string, std::string> stale;
};

/// Takes up a changed configuration while the daemon serves. What is slow (the file, accounts,
/// datasets, plans, arenas) is done on a thread of its own; then the loop adds, replaces, adjusts
/// and removes feeds in one turn. A configuration with any fault changes nothing.
///
/// Lifetime: loop and catalog outlive it; the server all calls but destruction, so that its
///   sockets are closed by then.
/// Threads: construction, destruction and all calls on the thread that runs the loop. Destruction
///   waits until what is being prepared is ready or given up.
class Reloader {
 public:
  /// `done` is called after each reload, whatever came of it.
  Reloader(boost::asio::io_context& loop, Catalog& catalog, Server& server,
           std::function<void()> done);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  /// Sets the running configuration, and the file to read again. Call it before begin().
  void set_running(ConfigSource source, Config running);

  /// The outcome of a reload, in one line.
  struct Outcome {
    bool applied = false;
    std::string text;
  };
  using Told = std::function<void(const Outcome&)>;

  /// Reads the file again. While that is under way, it is noted and done once more after it.
  /// `told`, if any, gets the outcome of a reload that began after this call.
  void begin(Told told = nullptr);
  /// A configuration is being prepared.
  bool under_way() const { return under_way_; }
  const Config& running() const { return running_; }
  /// Called whenever a reload begins, before it is prepared.
  void on_begin(std::function<void()> callback) { on_begin_ = std::move(callback); }
  /// The thread that prepares reloads, one after the other; for work that must not run meanwhile.
  HelperThread& thread() { return thread_; }
  /// Has given up what is being prepared: the daemon ends.
  void stop() { stop_.request_stop(); }

  ReloadStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// Looks at the files that feeds read.
  struct Looks {
    explicit Looks(boost::asio::io_context& loop) : patience(loop) {}
    boost::asio::steady_timer patience;  ///< With file systems that do not answer.
    std::map<std::string, DatasetStanding> found;
    std::size_t missing = 0;
    bool is_over = false;
  };

  void start();
  void prepare(Looks& looks);
  void prepared(Result<PreparedConfig> result);
  Outcome take_up(PreparedConfig ready);
  void serve(PreparedFeed feed);
  void note_absent(const std::map<std::string, Error>& feeds);
  Outcome refuse(const Error& error);

  boost::asio::io_context& loop_;
  Catalog& catalog_;
  Server& server_;
  std::function<void()> done_;
  ConfigSource source_;
  Config running_;
  bool under_way_ = false;
  std::function<void()> on_begin_;
  bool once_more_ = false;
  std::vector<Told> to_tell_;       ///< Callers of the reload that is under way.
  std::vector<Told> to_tell_next_;  ///< Callers of the one after it.
  ReloadStats stats_;
  std::optional<Clock::time_point> last_;
  std::stop_source stop_;
  HelperThread thread_{"bw-prepare"};
};

}  // namespace batchwright
