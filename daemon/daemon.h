#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/delivery/delivery.h"
#include "daemon/disk_watch.h"
#include "daemon/feed_opener.h"
#include "daemon/http/http.h"
#include "daemon/pages/figures.h"
#include "daemon/readiness.h"
#include "daemon/reload/reload.h"
#include "daemon/reload/reload_socket.h"
#include "daemon/socket_watch.h"
#include "daemon/stats/stats.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// The rooms, wired together: datasets are opened, feeds prepared, sockets bound; then one event
/// loop runs until SIGTERM or SIGINT. It does no work of its own.
///
/// Threads: all calls on the thread that runs the loop.
/// Destroyed in the reverse order of its members: no socket outlives what it speaks of.
class Daemon {
 public:
  /// What is wrong with the configuration's own text or the machine fails here, with the key or the
  /// address named: an endpoint in use. A feed that cannot be served, for whatever its data or the
  /// memory that is left are, is absent, and is opened as soon as that can be done.
  /// `source` is where the configuration comes from, and is read again at SIGHUP.
  static Result<std::unique_ptr<Daemon>> start(const ConfigSource& source, const Config& config);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Serves until SIGTERM or SIGINT, and reads the configuration again at SIGHUP. Returns the exit
  /// code.
  int run();

 private:
  explicit Daemon(const Config& config);

  void open_feeds();
  bool is_opening() const;
  Result<void> listen();
  Result<void> serve_pages();
  void publish_pages();
  void listen_to_signals();
  void await_signal();
  void feed_watchdog();
  void watch_feeds();
  void tell_state();
  void be_patient();
  std::string status(const ServerStatus& server) const;
  void reloaded();
  void opened();
  void open_reload_door();
  void watch_sockets();
  void watch_disks();
  std::vector<std::string> socket_paths() const;
  std::vector<std::string> gone_sockets() const;
  void stop();

  Config config_;
  Catalog catalog_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_};
  boost::asio::steady_timer watchdog_{loop_};
  std::unique_ptr<Reloader> reloader_;  ///< May wait for what it prepares, all sockets closed.
  std::unique_ptr<FeedOpener> opener_;  ///< The same.
  std::unique_ptr<Server> server_;
  std::unique_ptr<ReloadSocket> reload_door_;
  std::optional<SocketWatch> sockets_;
  std::unique_ptr<DiskWatch> disks_;
  std::unique_ptr<Figures> figures_;
  std::unique_ptr<HttpServer> endpoint_;
  boost::asio::steady_timer patience_{loop_};  ///< Runs while a feed may still hold up READY=1.
  Readiness readiness_;
};

}  // namespace batchwright
