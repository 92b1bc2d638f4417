// The rows of [daemon].

#include <array>
#include <set>
#include <utility>

#include "daemon/assembly/assembly.h"
#include "daemon/config/keys.h"
#include "daemon/http/http.h"
#include "formats/formats.h"

namespace batchwright {

namespace {

constexpr std::uint64_t kLeastMemoryBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostEndpoints = 16;
/// A Unix socket's path takes at most 107 bytes; the arena's socket has a longer one.
constexpr std::size_t kMostPathBytes = 100;
constexpr std::size_t kMostAllowed = 1024;
constexpr double kLeastShare = 0.01;
constexpr std::string_view kTcp = "tcp://";
constexpr std::chrono::milliseconds kMostGrace = std::chrono::hours(24);

bool is_ipc_path(std::string_view text) {
  return text.starts_with("ipc:///") && text.size() > kIpc.size() + 1 &&
         text.size() <= kIpc.size() + kMostPathBytes;
}

bool is_tcp_address(std::string_view text) {
  if (!text.starts_with(kTcp)) return false;
  std::string address(text.substr(kTcp.size()));
  // ZeroMQ's word for every interface, which no parser of addresses knows.
  if (address.starts_with("*:")) address.replace(0, 1, "0.0.0.0");
  return parse_listen_address(address).has_value();
}

bool is_endpoint(std::string_view text) { return is_ipc_path(text) || is_tcp_address(text); }

/// A list only, even of one; the element at fault where one is.
Fault read_endpoints(const ConfigNode& node, std::vector<std::string>& out) {
  std::vector<std::string> endpoints;
  const ConfigNode::List* list = node.list();
  if (list == nullptr || list->size() > kMostEndpoints) return &node;
  if (const Fault fault = read_texts(node, endpoints)) return fault;
  // The same address twice would fail at the second bind, as in use by this very daemon.
  std::set<std::string> seen;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (!is_endpoint(endpoints[i]) || !seen.insert(endpoints[i]).second) return &(*list)[i];
  }
  out = std::move(endpoints);
  return nullptr;
}

Fault read_events(const ConfigNode& node, std::string& out) {
  std::string endpoint;
  if (const Fault fault = read_text(node, endpoint)) return fault;
  // Whether it is in `endpoints` too is seen once all of [daemon] is read (parse.cpp).
  if (!endpoint.empty() && endpoint != "auto" && !is_endpoint(endpoint)) return &node;
  out = std::move(endpoint);
  return nullptr;
}

Fault read_stats(const ConfigNode& node, std::vector<std::string>& out) {
  // An empty text stands for no pages; an empty list is refused by read_texts().
  const std::string* text = node.text();
  if (text != nullptr && text->empty()) {
    out.clear();
    return nullptr;
  }
  const ConfigNode::List* list = node.list();
  if (list != nullptr && list->size() > kMostEndpoints) return &node;
  std::vector<std::string> addresses;
  if (const Fault fault = read_texts(node, addresses)) return fault;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Port 0 is another free port each time.
    const bool again = !seen.insert(addresses[i]).second && !addresses[i].ends_with(":0");
    if (again || !parse_http_address(addresses[i])) return list == nullptr ? &node : &(*list)[i];
  }
  out = std::move(addresses);
  return nullptr;
}

bool is_host_name(std::string_view text) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
  // 253: the most that the DNS carries, whose 255 bytes have a length in front and an end.
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

Fault read_stats_hosts(const ConfigNode& node, std::vector<std::string>& out) {
  const ConfigNode::List* list = node.list();
  if (list == nullptr || list->size() > kMostEndpoints) return &node;
  std::vector<std::string> hosts;
  for (const ConfigNode& element : *list) {
    const std::string* host = element.text();
    if (host == nullptr || !is_host_name(*host)) return &element;
    hosts.push_back(*host);
  }
  out = std::move(hosts);
  return nullptr;
}

Fault read_socket_mode(const ConfigNode& node, std::uint32_t& out) {
  const std::string* text = node.text();
  // Text, since 660 as a number of TOML is decimal: another mode than the one that was meant.
  if (text == nullptr || text->size() < 3 || text->size() > 4) return &node;
  // A first digit is for set-user-ID and the like, which mean nothing on a socket.
  if (text->size() == 4 && text->front() != '0') return &node;
  const auto mode = parse_whole<std::uint32_t>(*text, 8);
  if (!mode) return &node;
  out = *mode;
  return nullptr;
}

Fault read_group(const ConfigNode& node, std::string& out) {
  std::string group;
  if (const Fault fault = read_text(node, group)) return fault;
  // 32 bytes: the longest name that useradd(8) and groupadd(8) take.
  if (!is_name(group, 32)) return &node;
  out = std::move(group);
  return nullptr;
}

/// A way that only another processor has is a name like any other: whether this one has it is seen
/// at the start, so that a file is read alike on every machine. 0.2.0 had each instruction set
/// three times; the ways that are gone stand for the one that stayed.
Fault read_assembly_copy(const ConfigNode& node, std::string& out) {
  std::string name;
  if (const Fault fault = read_text(node, name)) return fault;
  for (const std::string_view gone : {"-prefetch", "-pages"}) {
    if (name.ends_with(gone)) name.resize(name.size() - gone.size());
  }
  if (name != kAutoCopy && find_copy_way(name) == nullptr) return &node;
  out = std::move(name);
  return nullptr;
}

Fault read_processors(const ConfigNode& node, std::string& out) {
  std::string text;
  if (const Fault fault = read_text(node, text)) return fault;
  if (!parse_processors(text)) return &node;
  out = std::move(text);
  return nullptr;
}

Fault read_io_priority(const ConfigNode& node, IoPriority& out) {
  return read_word(
      node, out,
      {{"normal", IoPriority::normal}, {"low", IoPriority::low}, {"idle", IoPriority::idle}});
}

Fault read_share(const ConfigNode& node, double& out) {
  double share = 0.0;
  if (const Fault fault = read_real(node, share)) return fault;
  if (!(share >= kLeastShare && share <= 1.0)) return &node;
  out = share;
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
    // (uid_t)-1 is the number of no account: to chown(2) it means "leave as it is".
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

Fault read_memory(const ConfigNode& node, std::uint64_t& out) {
  // No upper end: what the machine has is asked for when an arena is reserved.
  return read_bytes(node, out, kLeastMemoryBytes);
}

Fault read_grace(const ConfigNode& node, std::chrono::milliseconds& out) {
  return read_duration(node, out, kMostGrace);
}

Fault read_log_level(const ConfigNode& node, Severity& out) {
  const std::string* text = node.text();
  const auto level = text == nullptr ? std::nullopt : parse_log_level(*text);
  if (!level) return &node;
  out = *level;
  return nullptr;
}

Fault read_log_format(const ConfigNode& node, LogFormat& out) {
  return read_word(node, out, {{"text", LogFormat::text}, {"json", LogFormat::json}});
}

using D = DaemonConfig;
using enum Applies;

constexpr std::array kDaemonKeys{
    daemon_key<&D::endpoints, read_endpoints>(
        {"endpoints",
         "a list of up to 16 different addresses such as "
         "\"ipc:///run/batchwright/batchwright.sock\", with an absolute path of at most 100 bytes, "
         "or \"tcp://0.0.0.0:9476\", with a numeric address or *",
         R"(["ipc:///run/batchwright/batchwright.sock"])", restart, "Where clients connect"}),
    daemon_key<&D::events, read_events>(
        {"events",
         "an address as in endpoints; \"auto\" for one beside the first ipc://; \"\" for none",
         R"("auto")", restart,
         "Where events are published (epochs that begin and end, clients that come and go)"}),
    daemon_key<&D::stats, read_stats>(
        {"stats",
         "a numeric address and a port, such as \"127.0.0.1:9477\" or \"[::1]:9477\", or "
         "\"unix:///run/batchwright/stats.sock\"; a list of up to 16 of them; \"\" for none",
         R"("127.0.0.1:9477")", restart, "Where the HTTP pages are (figures, metrics, dashboard)"}),
    daemon_key<&D::stats_hosts, read_stats_hosts>(
        {"stats_hosts", "a list of up to 16 names of hosts", "[]", restart,
         "Names by which the pages may be asked for over TCP, beside localhost, numeric addresses "
         "and this machine's own"}),
    daemon_key<&D::memory_bytes, read_memory>(
        {"memory", "1MiB and up, a number of bytes or a text with B, KiB, MiB, GiB or TiB",
         R"("4GiB")", restart,
         "Ceiling for the arenas of all feeds together, reserved at the start"}),
    daemon_key<&D::assembly_threads, read_whole<1, 256>>(
        {"assembly_threads", "1 to 256", "2", restart, "Threads that copy sequences into batches"}),
    daemon_key<&D::assembly_copy, read_assembly_copy>(
        {"assembly_copy", "auto memcpy sse2 avx2 avx512 neon", R"("auto")", restart,
         "How they copy: auto for what is the fastest on this processor"}),
    daemon_key<&D::assembly_share, read_share>(
        {"assembly_share", "0.01 to 1", "1", restart,
         "Share of a processor that each assembly thread takes at most"}),
    daemon_key<&D::nice, read_whole<0, 19>>(
        {"nice", "0 to 19", "0", restart,
         "Added to the nice value of the threads that assemble and read ahead"}),
    daemon_key<&D::cpu_affinity, read_processors>(
        {"cpu_affinity", "processors by number and range, such as \"0-3,8\"; \"\" for all", R"("")",
         restart, "Processors on which these threads run"}),
    daemon_key<&D::io_priority, read_io_priority>(
        {"io_priority", "normal low idle", R"("normal")", restart,
         "How the kernel's I/O scheduler ranks their reads"}),
    daemon_key<&D::socket_mode, read_socket_mode>(
        {"socket_mode", "three octal digits as text, such as \"0660\"", R"("0660")", restart,
         "Access to the sockets, which clients need to read and to write"}),
    daemon_key<&D::socket_group, read_group>(
        {"socket_group", "name or number of a group, as text; \"\" for the daemon's own", R"("")",
         restart, "Group that owns the sockets"}),
    daemon_key<&D::allow_uids, read_ids>(
        {"allow_uids", "a list of up to 1024 names or numbers of users", "[]", in_place,
         "Users whose processes may be clients over ipc://"}),
    daemon_key<&D::allow_gids, read_ids>(
        {"allow_gids", "a list of up to 1024 names or numbers of groups", "[]", in_place,
         "Groups whose processes may be clients over ipc://"}),
    daemon_key<&D::curve_secret_key_file, read_path>(
        {"curve_secret_key_file", "path of a file that `batchwright keygen` wrote; \"\" for none",
         R"("")", restart, "The daemon's secret key for tcp://"}),
    daemon_key<&D::authorized_keys_file, read_path>(
        {"authorized_keys_file", "path of a file with one public key a line; \"\" for none",
         R"("")", restart, "Public keys of the clients that may connect over tcp://"}),
    daemon_key<&D::insecure, read_bool>(
        {"insecure", "true or false", "false", restart, "Allows tcp:// without keys"}),
    daemon_key<&D::max_clients, read_whole<1, 65536>>(
        {"max_clients", "1 to 65536", "256", restart, "Clients at once; one more is refused"}),
    daemon_key<&D::max_producers, read_whole<1, 65536>>(
        {"max_producers", "1 to 65536", "1024", restart,
         "Clients at once that push into live feeds, beside max_clients"}),
    daemon_key<&D::queue_grace, read_grace>(
        {"queue_grace", "0s to 24h, a text with ms, s, min or h", R"("10s")", in_place,
         "How long a queue keeps the batches of a client that is gone, for it to come back"}),
    daemon_key<&D::feed_grace, read_grace>(
        {"feed_grace", "0s to 24h, a text with ms, s, min or h", R"("60s")", in_place,
         "How long the clients of a feed whose data are missing, or have failed, wait for it to "
         "come back before they are refused"}),
    daemon_key<&D::log_level, read_log_level>({"log_level", "debug info warn error", R"("info")",
                                               in_place,
                                               "The least severe events that are logged"}),
    daemon_key<&D::log_format, read_log_format>(
        {"log_format", "text json", R"("text")", in_place, "What a line of the log is"}),
};

}  // namespace

std::span<const Key<DaemonConfig>> daemon_keys() { return kDaemonKeys; }

}  // namespace batchwright
