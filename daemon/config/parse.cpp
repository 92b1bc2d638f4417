// From a text to a Config. Faults are gathered, so that a person who mends a file sees all of them
// at once.

#include "daemon/config/parse.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "daemon/config/changes.h"
#include "daemon/config/complaints.h"
#include "daemon/config/features_keys.h"
#include "daemon/config/keys.h"
#include "daemon/config/live_feed.h"
#include "daemon/config/node.h"
#include "daemon/config/paths.h"
#include "daemon/config/read.h"

namespace batchwright {

namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr std::array<std::string_view, 2> kTopKeys{"daemon", "feed"};

/// Keys of [[feed]] that no row of feed_keys() reads.
std::vector<std::string_view> read_apart() {
  std::vector<std::string_view> names{"plan", "features", "style", "live", fields_row().name};
  for (const auto& key : live_feed_keys()) names.push_back(key.row.name);
  return names;
}

/// Whether a value is written as its type is: numbers without quotes, lists in brackets.
bool has_type(const ConfigNode& node, SettingType type) {
  const bool whole = std::holds_alternative<std::int64_t>(node.value);
  const bool real = whole || std::holds_alternative<double>(node.value);
  switch (type) {
    case SettingType::word:
    case SettingType::text: return node.text() != nullptr;
    case SettingType::real: return real;
    case SettingType::whole_list:
    case SettingType::real_list: return node.list() != nullptr;
    case SettingType::whole: break;
  }
  // TOML's whole numbers end at 2^63 - 1: a greater one, such as a seed, is written as text.
  const std::string* text = node.text();
  if (whole || text == nullptr) return whole;
  return parse_whole<std::uint64_t>(*text).value_or(0) > INT64_MAX;
}

/// Reads one text and gathers what is wrong with it.
class Reader {
 public:
  Reader(std::string_view name, Config config) : config_(std::move(config)), complaints_(name) {}

  Result<Config> read(const ConfigNode& top) {
    for (const ConfigNode& node : top.table()->entries) {
      if (node.key == "daemon") {
        read_daemon(node);
      } else if (node.key == "feed") {
        read_feeds(node);
      } else {
        complaints_.add_unknown(node, node.key, {kTopKeys.begin(), kTopKeys.end()});
      }
    }
    // A [[feed]] that is there and wrong has its complaint already.
    if (config_.feeds.empty() && complaints_.count() == 0) {
      complaints_.add(ConfigNode{}, "feed", "found none", "one [[feed]] or more");
    }
    check_joins();
    // A key of [daemon] that the feeds act on: rooms see no DaemonConfig.
    for (FeedConfig& feed : config_.feeds) {
      feed.served.queue_grace = config_.daemon.queue_grace;
      feed.served.assembly_threads = config_.daemon.assembly_threads;
    }
    if (complaints_.count() == 0) return std::move(config_);
    return Error{ErrorCode::bad_configuration, complaints_.text()};
  }

 private:
  void read_daemon(const ConfigNode& node) {
    complaints_.read_keys(node, "daemon", config_.daemon, daemon_keys());
    const DaemonConfig& daemon = config_.daemon;
    // Without the daemon's own key nothing is encrypted, and so no client's key is checked.
    if (!daemon.authorized_keys_file.empty() && daemon.curve_secret_key_file.empty()) {
      complaints_.add(node, "daemon.authorized_keys_file", "found without curve_secret_key_file",
                      "both, or neither");
    }
    for (const std::string& endpoint : daemon.endpoints) {
      if (endpoint == daemon.events) {
        complaints_.add(node, "daemon.events",
                        fmt::format("found \"{}\", which is in endpoints", endpoint),
                        "an address of its own");
      }
      require_keys(node, "daemon.endpoints", endpoint);
    }
    require_keys(node, "daemon.events", daemon.events);
  }

  void require_keys(const ConfigNode& node, std::string_view path, const std::string& endpoint) {
    const DaemonConfig& daemon = config_.daemon;
    // A Unix socket has its file's mode and the lists of users; a port is open to all.
    if (!endpoint.starts_with("tcp://")) return;
    if (!daemon.curve_secret_key_file.empty() || daemon.insecure) return;
    complaints_.add(
        node, path, fmt::format("found \"{}\" without keys", endpoint),
        "tcp:// with curve_secret_key_file (batchwright keygen makes one), or with insecure "
        "= true where every program that reaches the port may read the data");
  }

  void read_feeds(const ConfigNode& node) {
    // [feed] in single brackets is one table, and no list.
    const ConfigNode::List* list = node.list();
    if (list == nullptr || list->empty()) {
      return complaints_.add(node, "feed", fmt::format("found {}", describe_found(node)),
                             "one [[feed]] or more, in double brackets");
    }
    for (const ConfigNode& feed : *list) read_feed(feed);
  }

  void read_feed(const ConfigNode& node) {
    FeedConfig& feed = config_.feeds.emplace_back();
    const std::size_t before = complaints_.count();
    complaints_.read_keys(node, "feed", feed, feed_keys(), read_apart());
    // read_keys() has complained.
    if (node.table() == nullptr) return;
    // A table makes a feed live: TOML has no key that is both true and a table.
    const bool live = node.find("live") != nullptr;
    require_keys_of(node, live);
    for (const ConfigNode& entry : node.table()->entries) {
      if (entry.key == "plan") read_plan(entry, feed.served.plan, live);
      if (entry.key == "name") claim(entry, "feed.name", feed.served.name, names_);
      if (entry.key == "journal") claim(entry, "feed.journal", feed.served.journal, journals_);
    }
    if (live) {
      read_live_feed(node, feed, complaints_);
      if (complaints_.count() == before) check_live_feed(node, feed, complaints_);
      if (const ConfigNode* join = node.find("live")->find("join")) joins_.push_back(join);
    } else {
      refuse_live_keys(node, complaints_);
      read_features_of(node, feed.served.features);
      check_follow(node, feed.served);
    }
  }

  /// Once all feeds are known.
  void check_joins() {
    if (complaints_.count() != 0) return;
    for (const ConfigNode* join : joins_) {
      const std::string& from = *join->find("from")->text();
      const FeedConfig* feed = find_feed(config_, from);
      if (feed != nullptr && !feed->served.live) continue;
      complaints_.add(*join, "feed.live.join",
                      fmt::format("found from = \"{}\", which is {}", printable(from),
                                  feed == nullptr ? "no feed" : "a live feed"),
                      "a feed with a dataset in this file");
    }
  }

  /// An order file names what there is, and keys of one shard may come before those of another.
  void check_follow(const ConfigNode& feed, const FeedSettings& served) {
    if (!served.follow || served.plan.order != Order::file) return;
    complaints_.add(feed, "feed.follow", "found true with feed.plan.order = \"file\"", "false");
  }

  void read_features_of(const ConfigNode& feed, RecipeSettings& features) {
    const std::size_t before = complaints_.count();
    if (const ConfigNode* table = feed.find("features")) {
      complaints_.read_keys(*table, "feed.features", features, features_keys());
    }
    if (const ConfigNode* tables = feed.find("style")) read_styles(*tables, features.styles);
    if (complaints_.count() == before) check_features(feed, features);
  }

  /// What only one feed can have.
  void claim(const ConfigNode& node, std::string_view path, const std::string& value,
             std::set<std::string>& taken) {
    if (value.empty() || taken.insert(value).second) return;
    complaints_.add(node, path, fmt::format("found {} a second time", describe_found(node)),
                    "one that no other feed has");
  }

  /// A key without a default has to be there.
  void require_keys_of(const ConfigNode& feed, bool live) {
    for (const auto& key : feed_keys()) {
      if (!key.row.by_default.empty() || feed.find(key.row.name) != nullptr) continue;
      if (live && key.row.of == OfFeeds::stored) continue;
      complaints_.add(feed, fmt::format("feed.{}", key.row.name), "found nothing", key.row.allowed);
    }
  }

  void read_styles(const ConfigNode& node, std::vector<StyleSettings>& styles) {
    const ConfigNode::List* list = node.list();
    if (list == nullptr || list->empty()) {
      return complaints_.add(node, "feed.style", fmt::format("found {}", describe_found(node)),
                             "one [[feed.style]] or more, in double brackets");
    }
    for (const ConfigNode& each : *list) {
      StyleTable table;
      complaints_.read_keys(each, "feed.style", table, style_keys());
      if (const std::uint64_t count = style_count(table); count > kMostProducts) {
        complaints_.add(each, "feed.style", fmt::format("found lists with {} products", count),
                        fmt::format("up to {}", kMostProducts));
        continue;
      }
      const auto all = styles_of(table);
      styles.insert(styles.end(), all.begin(), all.end());
    }
  }

  /// What several keys say together, once each of them is sound by itself.
  void check_features(const ConfigNode& feed, RecipeSettings& features) {
    const auto is_plain = [](const StyleSettings& style) {
      StyleSettings other = style;
      other.weight = StyleSettings{}.weight;
      return other == StyleSettings{};
    };
    // Styles that do nothing are none.
    if (std::all_of(features.styles.begin(), features.styles.end(), is_plain)) {
      features.styles.clear();
    }
    if (const auto sound = check_recipe(features); !sound) {
      complaints_.add(feed, "feed.features", sound.error().message);
    }
  }

  void read_plan(const ConfigNode& node, PlanSettings& plan, bool live) {
    if (node.table() == nullptr) {
      return complaints_.add(node, "feed.plan", fmt::format("found {}", describe_found(node)),
                             "a table");
    }
    // With a setting at its default in place of a wrong one, check_settings() would find faults
    // that the file does not have.
    const std::size_t before = complaints_.count();
    for (const ConfigNode& entry : node.table()->entries) read_setting(entry, plan);
    // A live feed takes a few settings alone, which check_live_feed() compares.
    if (complaints_.count() != before || live) return;
    if (const auto sound = check_settings(plan); !sound) {
      complaints_.add(node, "feed.plan", sound.error().message);
    }
  }

  void read_setting(const ConfigNode& node, PlanSettings& plan) {
    const auto rows = setting_rows();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const SettingRow& r) { return r.name == node.key; });
    const std::string full = "feed.plan." + node.key;
    if (row == rows.end()) {
      std::vector<std::string_view> known;
      for (const SettingRow& r : rows) known.push_back(r.name);
      return complaints_.add_unknown(node, full, known);
    }
    const auto text = plain_text(node);
    // The planning room reads text, as from a command line: the type is TOML's affair.
    if (!text || !has_type(node, setting_type(row->name)) || !set_setting(plan, row->name, *text)) {
      const bool is_list = text && node.list() != nullptr;
      complaints_.add(node, full,
                      is_list ? fmt::format("found [{}]", *text)
                              : fmt::format("found {}", describe_found(node)),
                      row->allowed);
    }
  }

  Config config_;
  std::set<std::string> names_;
  std::set<std::string> journals_;
  std::vector<const ConfigNode*> joins_;  ///< Of live feeds.
  Complaints complaints_;
};

Error cannot_read(std::string why) { return {ErrorCode::bad_configuration, std::move(why)}; }

const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view name, Config config) {
  const auto top = parse_toml(text, name);
  if (!top) return top.error();
  return Reader(name, std::move(config)).read(*top);
}

bool is_read_once(const std::filesystem::path& path) {
  struct stat status {};
  const std::string text = path.string();
  const bool handed =
      text == "/dev/stdin" || text.starts_with("/dev/fd/") || text.starts_with("/proc/self/fd/");
  return handed && ::stat(text.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

Result<std::string> config_text(const std::filesystem::path& path) {
  struct stat status {};
  // Looked at before it is opened: to open a pipe waits for a writer, and to open a device may do
  // anything. What is not there is file_text()'s to say.
  const bool odd = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (odd && !is_read_once(path)) {
    return cannot_read(fmt::format("{}: cannot be read: found {}; allowed: a file, or /dev/stdin",
                                   path.string(), kind_of_file(status.st_mode)));
  }
  // One byte more than allowed, so that a longer file shows.
  auto text = file_text(path, kMostFileBytes + 1);
  if (!text) return cannot_read(text.error().message);
  if (text->size() > kMostFileBytes) {
    return cannot_read(fmt::format("{}: cannot be read: larger than 1 MiB", path.string()));
  }
  return text;
}

void place_sockets(DaemonConfig& daemon, const ConfigSource& source) {
  const DaemonConfig defaults;
  const std::string folder = source.folder.string();
  if (daemon.endpoints == defaults.endpoints) {
    daemon.endpoints = {fmt::format("{}{}/batchwright.sock", kIpc, folder)};
  }
  if (daemon.stats != defaults.stats) return;
  daemon.stats = {fmt::format("{}{}/stats.sock", kUnix, folder)};
  daemon.private_pages = source.private_page;
  if (source.private_page) daemon.stats.emplace_back("127.0.0.1:0");
}

Result<Config> load_config(const ConfigSource& source) {
  const auto text = config_text(source.file);
  if (!text) return text.error();
  Config unless;
  unless.daemon.log_level = source.log_level;
  auto config = parse_config(*text, source.file.string(), std::move(unless));
  if (!config) return config;
  if (auto apart = resolve_written(*config); !apart) {
    return cannot_read(fmt::format("{}: {}", source.file.string(), apart.error().message));
  }
  note_order_files(*config);
  if (!source.folder.empty()) place_sockets(config->daemon, source);
  return config;
}

}  // namespace batchwright
