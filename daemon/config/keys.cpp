// How each key is called, what it allows, where it goes.

#include "daemon/config/keys.h"

#include <array>
#include <charconv>
#include <set>

#include "daemon/stats/stats.h"

namespace batchwright {

namespace {

constexpr std::uint64_t kLeastMemoryBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostEndpoints = 16;
/// A Unix socket's path takes at most 107 bytes; the arena's socket has a longer one.
constexpr std::size_t kMostPathBytes = 100;
constexpr std::size_t kMostAllowed = 1024;
constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kTcp = "tcp://";
constexpr std::chrono::hours kMostGrace{24};

bool is_ipc_path(std::string_view text) {
  return text.starts_with("ipc:///") && text.size() > kIpc.size() + 1 &&
         text.size() <= kIpc.size() + kMostPathBytes;
}

bool is_tcp_address(std::string_view text) {
  if (!text.starts_with(kTcp)) return false;
  std::string address(text.substr(kTcp.size()));
  if (address.starts_with("*:")) address.replace(0, 1, "0.0.0.0");
  return parse_listen_address(address).has_value();
}

bool is_endpoint(std::string_view text) { return is_ipc_path(text) || is_tcp_address(text); }

Fault read_endpoints(DaemonConfig& out, const ConfigNode& node) {
  std::vector<std::string> endpoints;
  const ConfigNode::List* list = node.list();
  if (list == nullptr || list->size() > kMostEndpoints) return &node;
  if (const Fault fault = read_texts(node, endpoints)) return fault;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (!is_endpoint(endpoints[i]) || !seen.insert(endpoints[i]).second) return &(*list)[i];
  }
  out.endpoints = std::move(endpoints);
  return nullptr;
}

Fault read_events(DaemonConfig& out, const ConfigNode& node) {
  std::string endpoint;
  if (const Fault fault = read_text(node, endpoint)) return fault;
  if (!endpoint.empty() && endpoint != "auto" && !is_endpoint(endpoint)) return &node;
  out.events = std::move(endpoint);
  return nullptr;
}

Fault read_stats(DaemonConfig& out, const ConfigNode& node) {
  const std::string* text = node.text();
  if (text != nullptr && text->empty()) {
    out.stats.clear();
    return nullptr;
  }
  const ConfigNode::List* list = node.list();
  if (list != nullptr && list->size() > kMostEndpoints) return &node;
  std::vector<std::string> addresses;
  if (const Fault fault = read_texts(node, addresses)) return fault;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool again = !seen.insert(addresses[i]).second && !addresses[i].ends_with(":0");
    if (again || !parse_http_address(addresses[i])) return list == nullptr ? &node : &(*list)[i];
  }
  out.stats = std::move(addresses);
  return nullptr;
}

bool is_host_name(std::string_view text) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

Fault read_stats_hosts(DaemonConfig& out, const ConfigNode& node) {
  const ConfigNode::List* list = node.list();
  if (list == nullptr || list->size() > kMostEndpoints) return &node;
  std::vector<std::string> hosts;
  for (const ConfigNode& element : *list) {
    const std::string* host = element.text();
    if (host == nullptr || !is_host_name(*host)) return &element;
    hosts.push_back(*host);
  }
  out.stats_hosts = std::move(hosts);
  return nullptr;
}

Fault read_socket_mode(DaemonConfig& out, const ConfigNode& node) {
  const std::string* text = node.text();
  if (text == nullptr || text->size() < 3 || text->size() > 4) return &node;
  if (text->size() == 4 && text->front() != '0') return &node;
  std::uint32_t mode = 0;
  for (const char c : *text) {
    if (c < '0' || c > '7') return &node;
    mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  out.socket_mode = mode;
  return nullptr;
}

bool is_name(std::string_view text, std::size_t most_bytes) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return text.size() <= most_bytes && text.find_first_not_of(kLetters) == std::string_view::npos;
}

Fault read_group(DaemonConfig& out, const ConfigNode& node) {
  std::string group;
  if (const Fault fault = read_text(node, group)) return fault;
  if (!is_name(group, 32)) return &node;
  out.socket_group = std::move(group);
  return nullptr;
}

/// Users or groups, texts and whole numbers mixed at will.
Fault read_ids(const ConfigNode& node, std::vector<std::string>& out) {
  const ConfigNode::List* list = node.list();
  if (list == nullptr || list->size() > kMostAllowed) return &node;
  std::vector<std::string> ids;
  for (const ConfigNode& element : *list) {
    std::uint32_t number = 0;
    std::string name;
    if (read_whole(element, number, 0, UINT32_MAX - 1) == nullptr) {
      name = std::to_string(number);
    } else if (read_text(element, name) != nullptr || name.empty() || !is_name(name, 32)) {
      return &element;
    }
    ids.push_back(std::move(name));
  }
  out = std::move(ids);
  return nullptr;
}

Fault read_feed_name(FeedConfig& out, const ConfigNode& node) {
  std::string name;
  if (const Fault fault = read_text(node, name)) return fault;
  if (name.empty() || !is_name(name, 64)) return &node;
  out.name = std::move(name);
  return nullptr;
}

Fault read_dataset(FeedConfig& out, const ConfigNode& node) {
  std::vector<std::string> paths;
  if (const Fault fault = read_texts(node, paths)) return fault;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) return node.list() == nullptr ? &node : &(*node.list())[i];
  }
  out.dataset.assign(paths.begin(), paths.end());
  return nullptr;
}

Fault read_padding(FeedConfig& out, const ConfigNode& node) {
  if (node.table() == nullptr) return &node;
  PaddingValues values;
  for (const ConfigNode& entry : node.table()->entries) {
    if (const Fault fault = read_real(entry, values[entry.key])) return fault;
  }
  out.padding = std::move(values);
  return nullptr;
}

Fault read_corrupt_share(FeedConfig& out, const ConfigNode& node) {
  double share = 0.0;
  if (const Fault fault = read_real(node, share)) return fault;
  if (share < 0.0 || share > 1.0) return &node;
  out.max_corrupt_share = share;
  return nullptr;
}

using D = DaemonConfig;
using F = FeedConfig;
using N = ConfigNode;

constexpr std::array<Key<DaemonConfig>, 18> kDaemonKeys{{
    {"endpoints",
     "a list of up to 16 different addresses such as \"ipc:///run/batchwright/batchwright.sock\", "
     "with an absolute path of at most 100 bytes, or \"tcp://0.0.0.0:9476\", with a numeric "
     "address or *",
     read_endpoints},
    {"events",
     "an address as in endpoints; \"auto\" for one beside the first ipc://; \"\" for none",
     read_events},
    {"stats",
     "a numeric address and a port, such as \"127.0.0.1:9477\" or \"[::1]:9477\", or "
     "\"unix:///run/batchwright/stats.sock\"; a list of up to 16 of them; \"\" for none",
     read_stats},
    {"stats_hosts", "a list of up to 16 names of hosts", read_stats_hosts},
    {"memory", "1MiB and up, a number of bytes or a text with B, KiB, MiB, GiB or TiB",
     [](D& d, const N& n) { return read_bytes(n, d.memory_bytes, kLeastMemoryBytes); }},
    {"assembly_threads", "1 to 256",
     [](D& d, const N& n) { return read_whole(n, d.assembly_threads, 1, 256); }},
    {"socket_mode", "three octal digits as text, such as \"0660\"", read_socket_mode},
    {"socket_group", "name or number of a group, as text; \"\" for the daemon's own", read_group},
    {"allow_uids", "a list of up to 1024 names or numbers of users",
     [](D& d, const N& n) { return read_ids(n, d.allow_uids); }},
    {"allow_gids", "a list of up to 1024 names or numbers of groups",
     [](D& d, const N& n) { return read_ids(n, d.allow_gids); }},
    {"curve_secret_key_file", "path of a file that `batchwright keygen` wrote; \"\" for none",
     [](D& d, const N& n) { return read_path(n, d.curve_secret_key_file); }},
    {"authorized_keys_file", "path of a file with one public key a line; \"\" for none",
     [](D& d, const N& n) { return read_path(n, d.authorized_keys_file); }},
    {"insecure", "true false", [](D& d, const N& n) { return read_bool(n, d.insecure); }},
    {"max_clients", "1 to 65536",
     [](D& d, const N& n) { return read_whole(n, d.max_clients, 1, 65536); }},
    {"queue_grace", "0s to 24h, a text with ms, s, min or h",
     [](D& d, const N& n) { return read_duration(n, d.queue_grace, kMostGrace); }},
    {"feed_grace", "0s to 24h, a text with ms, s, min or h",
     [](D& d, const N& n) { return read_duration(n, d.feed_grace, kMostGrace); }},
    {"log_level", "debug info warn error",
     [](D& d, const N& n) {
       return read_word(n, d.log_level,
                        {{"debug", LogLevel::debug},
                         {"info", LogLevel::info},
                         {"warn", LogLevel::warn},
                         {"error", LogLevel::error}});
     }},
    {"log_format", "text json",
     [](D& d, const N& n) {
       return read_word(n, d.log_format, {{"text", LogFormat::text}, {"json", LogFormat::json}});
     }},
}};

constexpr std::array<Key<FeedConfig>, 16> kFeedKeys{{
    {"name", "1 to 64 of A-Z a-z 0-9 _ . -", read_feed_name},
    {"dataset", "path of a dataset, or a list of paths of its shards", read_dataset},
    {"lock", "true false", [](F& f, const N& n) { return read_bool(n, f.lock); }},
    {"slots", "2 to 65536", [](F& f, const N& n) { return read_whole(n, f.slots, 2, 65536); }},
    {"on_corrupt", "stop skip",
     [](F& f, const N& n) {
       return read_word(n, f.on_corrupt, {{"stop", OnCorrupt::stop}, {"skip", OnCorrupt::skip}});
     }},
    {"max_corrupt_share", "0 to 1", read_corrupt_share},
    {"verify", "once always never",
     [](F& f, const N& n) {
       return read_word(n, f.verify,
                        {{"once", VerifyRecords::once},
                         {"always", VerifyRecords::always},
                         {"never", VerifyRecords::never}});
     }},
    {"layout", "batch-major time-major",
     [](F& f, const N& n) {
       return read_word(n, f.layout,
                        {{"batch-major", Layout::batch_major}, {"time-major", Layout::time_major}});
     }},
    {"padding",
     "a table with a finite number for each field that it names, such as { labels = -100 }",
     read_padding},
    {"max_window", "1 to 65536",
     [](F& f, const N& n) { return read_whole(n, f.max_window, 1, 65536); }},
    {"poison", "true false", [](F& f, const N& n) { return read_bool(n, f.poison); }},
    {"max_lead", "0 to 1000000",
     [](F& f, const N& n) { return read_whole(n, f.max_lead, 0, 1'000'000); }},
    {"journal", "path of a file; \"\" for none",
     [](F& f, const N& n) { return read_path(n, f.journal); }},
    {"ledger", "path of a file; \"\" for none",
     [](F& f, const N& n) { return read_path(n, f.ledger); }},
    {"follow", "true false", [](F& f, const N& n) { return read_bool(n, f.follow); }},
    {"plan", "a table", nullptr},
}};

}  // namespace

std::span<const Key<DaemonConfig>> daemon_keys() { return kDaemonKeys; }

std::span<const Key<FeedConfig>> feed_keys() { return kFeedKeys; }

}  // namespace batchwright
