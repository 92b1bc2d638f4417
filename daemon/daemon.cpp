#include "daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <csignal>
#include <random>
#include <utility>

#include "daemon/account_ids.h"
#include "daemon/command_line.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/pages/readiness.h"
#include "daemon/pages/routes.h"
#include "daemon/reload/reload_prepare.h"
#include "daemon/reload/room_settings.h"
#include "daemon/signals.h"
#include "daemon/startup_memory.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

/// What an end may take.
constexpr unsigned kLastSeconds = 10;
/// How long feeds may be opened before clients are let in.
constexpr std::chrono::seconds kBeforeSockets{3};
/// Signals are held back until the daemon runs.
constexpr std::chrono::milliseconds kLookForSignals{50};
/// How long READY=1 waits for feeds to have their first batches.
constexpr std::chrono::seconds kBeforeReady{10};

/// Out of descriptors libzmq aborts: so there are enough of them for all clients from the start.
/// Errors: bad_configuration, with what is needed and allowed.
Result<void> raise_descriptor_limit(const Config& config) {
  constexpr rlim_t kOthers = 256;  // datasets, arenas, HTTP, connections that name no session
  const rlim_t needed = client_descriptors(config) + kOthers;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    return Error{ErrorCode::bad_configuration,
                 fmt::format("daemon.max_clients and max_producers: so many take {} file "
                             "descriptors, this process is allowed {} (ulimit -Hn, LimitNOFILE=)",
                             needed, limit.rlim_max)};
  }
  // All that is allowed, not just what is needed: the margin is an estimate.
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return {};
}

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

/// Whether it is being opened for the first time.
bool is_opened(const FeedStatus& feed) { return feed.retried && feed.state == FeedState::starting; }

/// 128 bits that cannot be guessed.
std::string random_name() {
  std::array<std::uint64_t, 2> bits{};
  std::random_device device;
  for (std::uint64_t& each : bits) each = std::uint64_t{device()} << 32 | device();
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace

Daemon::Daemon(const Config& config) : config_(config) {}

Daemon::~Daemon() { on_log_room(nullptr); }

Result<std::unique_ptr<Daemon>> Daemon::start(const ConfigSource& source, const Config& config) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  // Before the server, whose sockets and threads take descriptors.
  if (auto raised = raise_descriptor_limit(config); !raised) {
    return raised.error();
  }
  if (auto kernel = check_kernel(); !kernel) return kernel.error();
  // Of feeds, plans, reads and reloads, which come and go.
  constexpr std::size_t kOtherThreads = 4;
  const std::size_t threads = config.daemon.assembly_threads + kOtherThreads;
  if (auto room = room_for_threads(threads, "the daemon"); !room) return room.error();
  auto settings = server_settings(config.daemon);
  if (!settings) return settings.error();
  daemon->server_ = std::make_unique<Server>(daemon->loop_, std::move(*settings));
  on_log_room([&self = *daemon](std::uint64_t lines) {
    boost::asio::post(self.loop_,
                      [&self, lines] { self.server_->log().note<Event::log_dropped>(lines); });
  });
  daemon->server_->log().note<Event::copy_chosen>(daemon->server_->status(now()).copy);
  daemon->figures_ =
      std::make_unique<Figures>(daemon->loop_, *daemon->server_, config.daemon.memory_bytes);
  daemon->reloader_ = std::make_unique<Reloader>(daemon->loop_, daemon->catalog_, *daemon->server_,
                                                 [&self = *daemon] { self.reloaded(); });
  daemon->reloader_->set_running(source, config);
  daemon->opener_ =
      std::make_unique<FeedOpener>(daemon->loop_, daemon->catalog_, *daemon->server_,
                                   *daemon->reloader_, [&self = *daemon] { self.opened(); });
  daemon->open_feeds();
  if (is_asked_to_stop()) return daemon;  // run() hears of it first of all
  if (auto listening = daemon->listen(); !listening) return listening.error();
  daemon->open_reload_door();
  // Behind listen(): the files of the sockets have to be there to be known.
  daemon->watch_sockets();
  daemon->watch_disks();
  daemon->opener_->look();
  daemon->be_patient();
  daemon->tell_state();  // where no feed will ever tell of itself
  return daemon;
}

/// Feeds before sockets, for a moment: a client that connects finds every feed that is quickly
/// opened. The others are opened while it listens.
void Daemon::open_feeds() {
  // Feeds claim out of it; what is left, absent feeds and growing arenas may take later.
  server_->memory().set_left(config_.daemon.memory_bytes);
  const auto until = std::chrono::steady_clock::now() + kBeforeSockets;
  opener_->begin();
  while (is_opening() && !is_asked_to_stop() && std::chrono::steady_clock::now() < until) {
    loop_.run_one_for(kLookForSignals);
  }
  std::uint64_t arena_bytes = 0;
  for (const FeedStatus& feed : server_->status(now()).feeds) arena_bytes += feed.arena_bytes;
  server_->log().note<Event::arenas_reserved>(in_mib(arena_bytes),
                                              in_mib(config_.daemon.memory_bytes));
  const std::uint64_t claimed = config_.daemon.memory_bytes - server_->memory().left();
  const std::string lack = memory_shortage(claimed, memory_room());
  if (claimed != 0 && !lack.empty()) server_->log().note<Event::memory_short>(lack);
}

bool Daemon::is_opening() const {
  const std::vector<FeedStatus> feeds = server_->status(now()).feeds;
  return std::any_of(feeds.begin(), feeds.end(), is_opened);
}

Result<void> Daemon::listen() {
  if (auto served = serve_pages(); !served) return served;
  // Before the server listens: that starts the feeds, and their first state is told, too.
  watch_feeds();
  if (auto listening = server_->listen(); !listening) return listening;
  publish_pages();
  return {};
}

/// Beside each socket for clients. Who does not find it has to be told where the pages are.
void Daemon::publish_pages() {
  if (!endpoint_) return;
  for (const std::string& endpoint : config_.daemon.endpoints) {
    if (!endpoint.starts_with(kIpc)) continue;
    const std::string file = endpoint.substr(kIpc.size()) + std::string(kPagesSuffix);
    const auto published = endpoint_->publish(file);
    if (!published)
      spdlog::warn("where the pages are is in no file: {}", published.error().message);
  }
}

Result<void> Daemon::serve_pages() {
  if (config_.daemon.stats.empty()) return {};
  // The pages' sockets have the access of the clients' sockets.
  EndpointPlace place{
      config_.daemon.stats, {config_.daemon.socket_mode, {}}, {}, {}, &server_->log()};
  place.hosts.insert(config_.daemon.stats_hosts.begin(), config_.daemon.stats_hosts.end());
  if (!config_.daemon.socket_group.empty()) {
    const auto group = group_id("daemon.socket_group", config_.daemon.socket_group);
    if (!group) return group.error();
    place.access.gid = *group;
  }
  if (config_.daemon.private_pages) place.secret = random_name();
  // Called on the loop, when endpoint_ is set.
  const auto figures = [this] {
    StatsSource source = figures_->source();
    source.reload = reloader_->stats();
    source.not_ready = not_ready(source, gone_sockets());
    if (disks_) source.disks = disks_->latest();
    const EndpointFigures http = endpoint_->figures();
    source.http = {http.connections, http.requests, http.refused};
    return source;
  };
  auto endpoint = HttpServer::listen(
      loop_, place, make_routes(loop_, figures, *server_, [this] { return gone_sockets(); }));
  if (!endpoint) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  for (std::size_t i = 0; i < place.addresses.size(); ++i) {
    const std::string& address = place.addresses[i];
    const std::uint16_t port = endpoint_->ports()[i];
    // A Unix socket has no port; of ":0" the log tells the port that was bound.
    if (port == 0) {
      server_->log().note<Event::stats_on_socket>(address);
    } else {
      const std::string host = address.substr(0, address.rfind(':'));
      // A log has other readers than the user: a secret is not in it.
      server_->log().note<Event::stats_listening>(
          fmt::format("{}:{}{}", host, port, place.secret.empty() ? "" : "/…"));
    }
  }
  return {};
}

void Daemon::watch_feeds() {
  for (const auto& feed : server_->feeds()) {
    feed->on_state([this] {
      tell_state();
      // Not within the feed's call: it may be put away.
      boost::asio::post(loop_, [this] { opener_->look(); });
    });
  }
}

/// What `systemctl status` shows.
std::string Daemon::status(const ServerStatus& server) const {
  std::vector<std::string> failed;
  std::vector<std::string> opening;
  for (const FeedStatus& feed : server.feeds) {
    if (feed.state == FeedState::failed) failed.push_back(feed.name);
    if (is_opened(feed)) opening.push_back(feed.name);
  }
  const std::size_t all = server.feeds.size();
  const std::size_t missing = failed.size() + opening.size();
  std::string text = fmt::format("serving {}", all - missing);
  if (missing != 0) text += fmt::format(" of {}", all);
  text += all == 1 ? " feed" : " feeds";
  if (!opening.empty()) text += fmt::format(", opening: {}", fmt::join(opening, " "));
  if (!failed.empty()) text += fmt::format(", failed: {}", fmt::join(failed, " "));
  const std::vector<std::string> gone = gone_sockets();
  if (!gone.empty()) text += fmt::format("; sockets are gone: {}", fmt::join(gone, " "));
  const auto refusal = reloader_->stats().last_refusal;
  // A refusal stays until a reload succeeds: a restart would fail by that file.
  return refusal ? fmt::format("{}; the last reload was refused: {}", text, *refusal) : text;
}

/// A feed that is slow to open, or to have its first batches, keeps nothing else from being ready.
void Daemon::be_patient() {
  patience_.expires_after(kBeforeReady);
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tell_state();
  });
}

void Daemon::tell_state() {
  if (!sockets_) return;  // it does not listen yet
  const ServerStatus server = server_->status(now());
  const std::string text = status(server);
  const bool starting =
      std::any_of(server.feeds.begin(), server.feeds.end(),
                  [](const FeedStatus& feed) { return feed.state == FeedState::starting; });
  const bool refused = reloader_->stats().last_refusal.has_value();
  const bool waited = patience_.expiry() <= std::chrono::steady_clock::now();
  // Called again as each feed changes state, until none is starting, and once that took long.
  switch (readiness_.next({reloader_->under_way(), starting && !waited, refused})) {
    case Readiness::News::none: break;
    case Readiness::News::status: notify_status(text); break;
    case Readiness::News::ready:
      server_->log().note<Event::daemon_ready>(text);
      notify_ready(text);
      let_start_memory_go();
      break;
    case Readiness::News::still_ready: notify_ready(text); break;
  }
}

void Daemon::reloaded() {
  readiness_.reloaded();
  be_patient();
  watch_feeds();
  tell_state();
  opener_->look();
}

void Daemon::opened() {
  watch_feeds();
  tell_state();
}

/// Where it cannot be had, SIGHUP does all but answer.
void Daemon::open_reload_door() {
  auto door = ReloadSocket::open(loop_, ::getpid(), [this](ReloadSocket::Answer answer) {
    reloader_->begin([answer = std::move(answer)](const Reloader::Outcome& outcome) {
      answer(outcome.applied, outcome.text);
    });
  });
  if (!door) return server_->log().note<Event::reload_door_shut>(door.error().message);
  reload_door_ = std::move(*door);
}

void Daemon::watch_sockets() {
  sockets_.emplace(loop_, socket_paths(), [this](const std::vector<std::string>& newly_gone) {
    for (const std::string& path : newly_gone) server_->log().note<Event::sockets_gone>(path);
    tell_state();
  });
}

void Daemon::watch_disks() {
  disks_ = std::make_unique<DiskWatch>(loop_, [this] {
    std::vector<DiskStats> files;
    // Of absent feeds, too: a full disk may be why they are.
    for (const FeedConfig& feed : reloader_->running().feeds) {
      const FeedSettings& settings = feed.served;
      const auto add = [&](std::string_view what, const std::filesystem::path& path) {
        if (!path.empty()) files.push_back({settings.name, what, path.string()});
      };
      add("journal", settings.journal);
      add("ledger", settings.ledger);
      if (settings.live) add("record", settings.live->record);
      if (settings.live) add("spool", settings.live->spool);
    }
    return files;
  });
}

std::vector<std::string> Daemon::gone_sockets() const {
  return sockets_ ? sockets_->gone() : std::vector<std::string>();
}

std::vector<std::string> Daemon::socket_paths() const {
  std::vector<std::string> paths;
  for (const std::string& endpoint : config_.daemon.endpoints) {
    if (!endpoint.starts_with(kIpc)) continue;
    paths.push_back(endpoint.substr(kIpc.size()));
    paths.push_back(paths.back() + ".arena");
  }
  // As it is in fact: the configuration may say "auto".
  const std::string& events = server_->events_endpoint();
  if (events.starts_with(kIpc)) paths.push_back(events.substr(kIpc.size()));
  for (const std::string& address : config_.daemon.stats) {
    if (address.starts_with(kUnix)) paths.push_back(address.substr(kUnix.size()));
  }
  return paths;
}

int Daemon::run() {
  listen_to_signals();
  feed_watchdog();
  const auto ran = as_result(ErrorCode::internal, "", [this]() -> Result<void> {
    loop_.run();
    return {};
  });
  if (ran) {
    // From here on what other threads do is waited for, be it for a file system.
    end_within(kLastSeconds, 0);
    return 0;
  }
  // Lack of memory, or our own bug. Clients go on where they were once the daemon is back.
  server_->log().note<Event::loop_failed>(ran.error().message);
  // From here on signals would end it without an exit code. What the exception went through may be
  // waited for at the end, and never come.
  hold_signals();
  end_within(kLastSeconds, 1);
  server_->say_goodbye();
  return 1;
}

void Daemon::listen_to_signals() {
  // Handlers first: a signal that is let in without one ends the process.
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
    // Not waited for again: a second signal cannot hasten an orderly stop, SIGKILL can.
    stop();
  });
}

void Daemon::feed_watchdog() {
  const auto interval = watchdog_interval();
  if (!interval) return;
  // On the loop, for a loop that hangs is what systemd is to notice.
  notify_watchdog();
  watchdog_.expires_after(*interval);
  watchdog_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed_watchdog();
  });
}

void Daemon::stop() {
  notify_stopping();
  // What is being prepared is given up, so that the destructors need not wait for a plan.
  reloader_->stop();
  opener_->stop();
  server_->say_goodbye();
  // Goodbye first: ZeroMQ's own threads deliver it while the rest is taken down.
  if (endpoint_) endpoint_->stop();
  loop_.stop();
}

}  // namespace batchwright
