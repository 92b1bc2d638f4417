#include "daemon/reload/room_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/account_ids.h"

namespace batchwright {
namespace {

/// The address for events: beside the first Unix socket for "auto", empty for none.
std::string events_endpoint(const DaemonConfig& config) {
  if (config.events != "auto") return config.events;
  const auto local =
      std::find_if(config.endpoints.begin(), config.endpoints.end(),
                   [](const std::string& endpoint) { return endpoint.starts_with("ipc://"); });
  return local == config.endpoints.end() ? "" : *local + ".events";
}

/// Errors: invalid_argument, with the key.
Result<ThreadPolicy> manners_of(const DaemonConfig& config) {
  auto processors = parse_processors(config.cpu_affinity);
  if (!processors) return processors.error();
  ThreadPolicy policy{config.nice, std::move(*processors), config.io_priority,
                      config.assembly_share};
  if (auto checked = check_manners(policy); !checked) {
    return Error{checked.error().code,
                 fmt::format("daemon.cpu_affinity: {}", checked.error().message)};
  }
  return policy;
}

}  // namespace

std::uint64_t client_descriptors(const Config& config) {
  // A client has a socket and a connection to the arena socket; a producer has an area, too.
  const std::uint64_t clients = 2 * std::uint64_t{config.daemon.max_clients};
  const bool has_live = std::any_of(config.feeds.begin(), config.feeds.end(),
                                    [](const auto& feed) { return feed.served.live.has_value(); });
  return has_live ? clients + 3 * std::uint64_t{config.daemon.max_producers} : clients;
}

Error in_feed(const std::string& name, const Error& error) {
  return {error.code, fmt::format("feed {}: {}", name, error.message)};
}

Result<AllowList> allow_list(const DaemonConfig& config) {
  AllowList allowed;
  for (const std::string& user : config.allow_uids) {
    const auto id = user_id("daemon.allow_uids", user);
    if (!id) return id.error();
    allowed.uids.insert(*id);
  }
  for (const std::string& group : config.allow_gids) {
    const auto id = group_id("daemon.allow_gids", group);
    if (!id) return id.error();
    allowed.gids.insert(*id);
  }
  return allowed;
}

Result<ServerSettings> server_settings(const DaemonConfig& config) {
  if (auto known = check_copy(config.assembly_copy); !known) return known.error();
  ServerSettings settings;
  settings.endpoints = config.endpoints;
  settings.events = events_endpoint(config);
  settings.version = BATCHWRIGHT_VERSION;
  settings.assembly_threads = config.assembly_threads;
  settings.assembly_copy = config.assembly_copy;
  auto policy = manners_of(config);
  if (!policy) return policy.error();
  settings.policy = std::move(*policy);
  settings.max_clients = config.max_clients;
  settings.max_producers = config.max_producers;
  settings.feed_grace = config.feed_grace;
  settings.access.mode = config.socket_mode;
  // Without a group the sockets keep that of the process.
  if (!config.socket_group.empty()) {
    const auto group = group_id("daemon.socket_group", config.socket_group);
    if (!group) return group.error();
    settings.access.gid = *group;
  }
  auto allowed = allow_list(config);
  if (!allowed) return allowed.error();
  settings.allowed = std::move(*allowed);
  auto keys = load_server_keys(config.curve_secret_key_file, config.authorized_keys_file);
  if (!keys) return keys.error();
  settings.keys = std::move(*keys);
  return settings;
}

}  // namespace batchwright
