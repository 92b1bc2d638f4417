#include "daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

#include "daemon/account_ids.h"
#include "daemon/notify.h"
#include "daemon/room_settings.h"
#include "daemon/routes.h"
#include "daemon/signals.h"

namespace batchwright {
namespace {

/// A client takes two descriptors, and out of descriptors libzmq aborts: so there are enough of
/// them from the start. Errors: bad_configuration, with what is needed and allowed.
Result<void> raise_descriptor_limit(std::uint32_t max_clients) {
  constexpr rlim_t kOthers = 256;  // datasets, arenas, HTTP, connections that name no session
  const rlim_t needed = 2 * rlim_t{max_clients} + kOthers;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("daemon.max_clients: {} clients take {} file descriptors, this "
                             "process is allowed {} (ulimit -Hn, LimitNOFILE=)",
                             max_clients, needed, limit.rlim_max)};
  }
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return {};
}

}  // namespace

Daemon::Daemon(const Config& config) : config_(config) {}

Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(const std::filesystem::path& file,
                                              const Config& config) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  if (auto raised = raise_descriptor_limit(config.daemon.max_clients); !raised) {
    return raised.error();
  }
  auto settings = server_settings(config.daemon);
  if (!settings) return settings.error();
  daemon->server_ = std::make_unique<Server>(daemon->loop_, std::move(*settings));
  daemon->figures_ =
      std::make_unique<Figures>(daemon->loop_, *daemon->server_, config.daemon.memory_bytes);
  daemon->reloader_ = std::make_unique<Reloader>(daemon->loop_, daemon->catalog_, *daemon->server_,
                                                 [&self = *daemon] { self.reloaded(); });
  daemon->reloader_->set_running(file, config);
  if (auto added = daemon->add_feeds(); !added) return added.error();
  if (is_asked_to_stop()) return daemon;  // run() hears of it first of all
  if (auto listening = daemon->listen(); !listening) return listening.error();
  return daemon;
}

Result<void> Daemon::add_feeds() {
  for (const FeedConfig& feed : config_.feeds) {
    if (is_asked_to_stop()) return {};
    auto dataset = catalog_.open(feed.dataset, feed.verify);
    if (!dataset) return in_feed(feed.name, dataset.error());
    FeedSettings settings = feed_settings(feed, config_.daemon.queue_grace);
    auto resources = prepare_feed(*dataset, settings, config_.daemon.memory_bytes - arena_bytes_);
    if (!resources) return in_feed(feed.name, resources.error());
    arena_bytes_ += resources->arena->bytes();
    server_->add_feed(std::move(settings), std::move(*resources));
  }
  server_->memory().set_left(config_.daemon.memory_bytes - arena_bytes_);
  server_->log().note<Event::arenas_reserved>(arena_bytes_, config_.daemon.memory_bytes);
  return {};
}

Result<void> Daemon::listen() {
  if (auto served = serve_pages(); !served) return served;
  watch_feeds();
  return server_->listen();
}

Result<void> Daemon::serve_pages() {
  if (config_.daemon.stats.empty()) return {};
  EndpointPlace place{config_.daemon.stats, {config_.daemon.socket_mode, {}}, {}, &server_->log()};
  if (!config_.daemon.socket_group.empty()) {
    const auto group = group_id("daemon.socket_group", config_.daemon.socket_group);
    if (!group) return group.error();
    place.access.gid = *group;
  }
  const auto figures = [this] {
    StatsSource source = figures_->source();
    source.reload = reloader_->stats();
    const EndpointFigures http = endpoint_->figures();
    source.http = {http.connections, http.requests, http.refused};
    return source;
  };
  auto endpoint = Endpoint::listen(loop_, place, make_routes(loop_, figures, *server_));
  if (!endpoint) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  for (std::size_t i = 0; i < place.addresses.size(); ++i) {
    const std::uint16_t port = endpoint_->ports()[i];
    if (port == 0) server_->log().note<Event::stats_on_socket>(place.addresses[i]);
    if (port != 0) server_->log().note<Event::stats_listening>(place.addresses[i], port);
  }
  return {};
}

void Daemon::watch_feeds() {
  for (const auto& feed : server_->feeds()) {
    feed->on_state([this] { tell_state(); });
  }
}

/// What `systemctl status` shows.
std::string Daemon::status() const {
  const auto& feeds = server_->feeds();
  std::vector<std::string> failed;
  for (const auto& feed : feeds) {
    if (feed->state() == FeedState::failed) failed.push_back(feed->name());
  }
  std::string text = fmt::format("serving {}", feeds.size() - failed.size());
  if (!failed.empty()) text += fmt::format(" of {}", feeds.size());
  text += feeds.size() == 1 ? " feed" : " feeds";
  if (!failed.empty()) text += fmt::format(", failed: {}", fmt::join(failed, " "));
  const auto refusal = reloader_->stats().last_refusal;
  return refusal ? text + "; the last reload was refused: " + *refusal : text;
}

/// systemd hears that we are ready once the first batches of every feed are there, or will never
/// be: until then nobody depends on us. What a refused configuration leaves is what ran before it,
/// ready or not: of that it hears at once. A feed that fails later only changes the status.
void Daemon::tell_state() {
  const std::string text = status();
  if (!owes_ready_ || reloader_->under_way()) return notify_status(text);
  const auto& feeds = server_->feeds();
  const bool starting = std::any_of(feeds.begin(), feeds.end(), [](const auto& feed) {
    return feed->state() == FeedState::starting;
  });
  const bool refused = reloader_->stats().last_refusal.has_value();
  if (starting && !(was_ready_ && refused)) return;
  owes_ready_ = false;
  if (!std::exchange(was_ready_, true) || !refused) server_->log().note<Event::daemon_ready>(text);
  notify_ready(text);
}

/// systemd waits for READY=1 after each reload.
void Daemon::reloaded() {
  owes_ready_ = true;
  watch_feeds();
  tell_state();
}

int Daemon::run() {
  listen_to_signals();
  feed_watchdog();
  try {
    loop_.run();
    return 0;
  } catch (const std::exception& failure) {
    // Lack of memory, or our own bug. Clients go on where they were once the daemon is back.
    server_->log().note<Event::loop_failed>(failure.what());
    server_->say_goodbye();
    return 1;
  }
}

void Daemon::listen_to_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) signals_.add(signal);
  await_signal();
  let_signals_in();
}

void Daemon::await_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      reloader_->begin();
      return await_signal();
    }
    server_->log().note<Event::stopping>(signal);
    stop();
  });
}

void Daemon::feed_watchdog() {
  const auto interval = watchdog_interval();
  if (!interval) return;
  notify_watchdog();
  watchdog_.expires_after(*interval);
  watchdog_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed_watchdog();
  });
}

void Daemon::stop() {
  notify_stopping();
  reloader_->stop();
  server_->say_goodbye();
  if (endpoint_) endpoint_->stop();
  loop_.stop();
}

}  // namespace batchwright
