#include "daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

#include "daemon/account_ids.h"
#include "daemon/notify.h"
#include "daemon/routes.h"

namespace batchwright {
namespace {

Error in_feed(const std::string& name, const Error& error) {
  return {error.code, "feed " + name + ": " + error.message};
}

FeedSettings feed_settings(const FeedConfig& feed, std::chrono::milliseconds queue_grace) {
  FeedSettings settings;
  settings.name = feed.name;
  settings.plan = feed.plan;
  settings.layout = feed.layout;
  settings.padding_value = feed.padding_value;
  settings.on_corrupt = feed.on_corrupt;
  settings.slots = feed.slots;
  settings.max_window = feed.max_window;
  settings.poison = feed.poison;
  settings.max_lead = feed.max_lead;
  settings.journal = feed.journal;
  settings.ledger = feed.ledger;
  settings.follow = feed.follow;
  settings.queue_grace = queue_grace;
  return settings;
}

std::string events_endpoint(const DaemonConfig& config) {
  if (config.events != "auto") return config.events;
  const auto local =
      std::find_if(config.endpoints.begin(), config.endpoints.end(),
                   [](const std::string& endpoint) { return endpoint.starts_with("ipc://"); });
  return local == config.endpoints.end() ? "" : *local + ".events";
}

/// Errors: bad_configuration (accounts that are not there, files of keys).
Result<ServerSettings> server_settings(const DaemonConfig& config) {
  ServerSettings settings;
  settings.endpoints = config.endpoints;
  settings.events = events_endpoint(config);
  settings.version = BATCHWRIGHT_VERSION;
  settings.assembly_threads = config.assembly_threads;
  settings.max_clients = config.max_clients;
  settings.access.mode = config.socket_mode;
  if (!config.socket_group.empty()) {
    const auto group = group_id("daemon.socket_group", config.socket_group);
    if (!group) return group.error();
    settings.access.gid = *group;
  }
  for (const std::string& user : config.allow_uids) {
    const auto id = user_id("daemon.allow_uids", user);
    if (!id) return id.error();
    settings.allowed.uids.insert(*id);
  }
  for (const std::string& group : config.allow_gids) {
    const auto id = group_id("daemon.allow_gids", group);
    if (!id) return id.error();
    settings.allowed.gids.insert(*id);
  }
  auto keys = load_server_keys(config.curve_secret_key_file, config.authorized_keys_file);
  if (!keys) return keys.error();
  settings.keys = std::move(*keys);
  return settings;
}

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

Result<std::unique_ptr<Daemon>> Daemon::start(const Config& config) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  if (auto raised = raise_descriptor_limit(config.daemon.max_clients); !raised) {
    return raised.error();
  }
  auto settings = server_settings(config.daemon);
  if (!settings) return settings.error();
  daemon->server_ = std::make_unique<Server>(daemon->loop_, std::move(*settings));
  daemon->figures_ = std::make_unique<Figures>(*daemon->server_, config.daemon.memory_bytes);
  if (auto added = daemon->add_feeds(); !added) return added.error();
  if (auto listening = daemon->listen(); !listening) return listening.error();
  return daemon;
}

Result<void> Daemon::add_feeds() {
  for (const FeedConfig& feed : config_.feeds) {
    auto dataset = catalog_.open(feed.dataset, feed.verify);
    if (!dataset) return in_feed(feed.name, dataset.error());
    FeedSettings settings = feed_settings(feed, config_.daemon.queue_grace);
    auto resources = prepare_feed(*dataset, settings, config_.daemon.memory_bytes - arena_bytes_);
    if (!resources) return in_feed(feed.name, resources.error());
    arena_bytes_ += resources->arena->bytes();
    server_->add_feed(std::move(settings), std::move(*resources));
  }
  server_->memory().set_left(config_.daemon.memory_bytes - arena_bytes_);
  spdlog::info("arenas take {} of {} bytes", arena_bytes_, config_.daemon.memory_bytes);
  return {};
}

Result<void> Daemon::listen() {
  if (auto served = serve_pages(); !served) return served;
  tell_when_ready();
  return server_->listen();
}

Result<void> Daemon::serve_pages() {
  if (config_.daemon.stats.empty()) return {};
  EndpointPlace place{config_.daemon.stats, {config_.daemon.socket_mode, {}}};
  if (!config_.daemon.socket_group.empty()) {
    const auto group = group_id("daemon.socket_group", config_.daemon.socket_group);
    if (!group) return group.error();
    place.access.gid = *group;
  }
  const auto figures = [this] { return figures_->source(); };
  auto endpoint = Endpoint::listen(loop_, place, make_routes(loop_, figures, *server_));
  if (!endpoint) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  for (std::size_t i = 0; i < place.addresses.size(); ++i) {
    const std::uint16_t port = endpoint_->ports()[i];
    if (port == 0) spdlog::info("stats at {}", place.addresses[i]);
    if (port != 0) spdlog::info("stats at http://{}/stats, port {}", place.addresses[i], port);
  }
  return {};
}

/// Tells systemd once the first batches of every feed are there: until then nobody depends on us.
void Daemon::tell_when_ready() {
  for (const auto& feed : server_->feeds()) {
    feed->on_ready([this] {
      if (++feeds_ready_ < server_->feeds().size()) return;
      const std::string status = fmt::format("serving {} feeds", server_->feeds().size());
      spdlog::info("ready: {}", status);
      notify_ready(status);
    });
  }
}

int Daemon::run() {
  await_signal();
  feed_watchdog();
  try {
    loop_.run();
    return 0;
  } catch (const std::exception& failure) {
    // Lack of memory, or our own bug. Clients go on where they were once the daemon is back.
    spdlog::critical("the event loop ends: {}", failure.what());
    server_->say_goodbye();
    return 1;
  }
}

void Daemon::await_signal() {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    spdlog::info("signal {}: stopping", signal);
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
  server_->say_goodbye();
  if (endpoint_) endpoint_->stop();
  loop_.stop();
}

}  // namespace batchwright
