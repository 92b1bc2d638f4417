#include "daemon/config/changes.h"

#include <algorithm>
#include <string_view>

namespace batchwright {
namespace {

class Names {
 public:
  void add_if(bool differs, std::string_view name) {
    if (differs) names_.emplace_back(name);
  }
  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& all() const { return names_; }
  std::string text() const {
    std::string text;
    for (const std::string& name : names_) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

 private:
  std::vector<std::string> names_;
};

/// `wanted` but for the keys that can change.
DaemonConfig with_fixed_keys(DaemonConfig wanted, const DaemonConfig& running) {
  wanted.log_level = running.log_level;
  wanted.log_format = running.log_format;
  wanted.queue_grace = running.queue_grace;
  wanted.feed_grace = running.feed_grace;
  wanted.allow_uids = running.allow_uids;
  wanted.allow_gids = running.allow_gids;
  return wanted;
}

std::vector<std::string> keys_that_need_restart(const DaemonConfig& a, const DaemonConfig& b) {
  Names names;
  names.add_if(a.endpoints != b.endpoints, "daemon.endpoints");
  names.add_if(a.events != b.events, "daemon.events");
  names.add_if(a.stats != b.stats, "daemon.stats");
  names.add_if(a.stats_hosts != b.stats_hosts, "daemon.stats_hosts");
  names.add_if(a.memory_bytes != b.memory_bytes, "daemon.memory");
  names.add_if(a.assembly_threads != b.assembly_threads, "daemon.assembly_threads");
  names.add_if(a.socket_mode != b.socket_mode, "daemon.socket_mode");
  names.add_if(a.socket_group != b.socket_group, "daemon.socket_group");
  names.add_if(a.curve_secret_key_file != b.curve_secret_key_file, "daemon.curve_secret_key_file");
  names.add_if(a.authorized_keys_file != b.authorized_keys_file, "daemon.authorized_keys_file");
  names.add_if(a.insecure != b.insecure, "daemon.insecure");
  names.add_if(a.max_clients != b.max_clients, "daemon.max_clients");
  names.add_if(names.empty() && with_fixed_keys(b, a) != a, "a key of [daemon]");
  return names.all();
}

void compare_plans(const PlanSettings& a, const PlanSettings& b, Names& names) {
  for (const SettingRow& row : setting_rows()) {
    names.add_if(get_setting(a, row.name) != get_setting(b, row.name),
                 "plan." + std::string(row.name));
  }
}

FeedChange compare_feeds(const FeedConfig& a, const FeedConfig& b) {
  Names place;
  place.add_if(a.on_corrupt != b.on_corrupt, "on_corrupt");
  place.add_if(a.max_corrupt_share != b.max_corrupt_share, "max_corrupt_share");
  place.add_if(a.max_window != b.max_window, "max_window");
  place.add_if(a.poison != b.poison, "poison");
  place.add_if(a.max_lead != b.max_lead, "max_lead");
  Names anew;
  anew.add_if(a.dataset != b.dataset, "dataset");
  anew.add_if(a.lock != b.lock, "lock");
  anew.add_if(a.slots != b.slots, "slots");
  anew.add_if(a.verify != b.verify, "verify");
  anew.add_if(a.layout != b.layout, "layout");
  anew.add_if(a.padding != b.padding, "padding");
  anew.add_if(a.journal != b.journal, "journal");
  anew.add_if(a.ledger != b.ledger, "ledger");
  anew.add_if(a.follow != b.follow, "follow");
  compare_plans(a.plan, b.plan, anew);
  const std::string between = place.empty() || anew.empty() ? "" : ", ";
  return {a.name, anew.text() + between + place.text(), anew.empty()};
}

}  // namespace

const FeedConfig* find_feed(const Config& config, const std::string& name) {
  const auto found = std::find_if(config.feeds.begin(), config.feeds.end(),
                                  [&name](const FeedConfig& feed) { return feed.name == name; });
  return found == config.feeds.end() ? nullptr : &*found;
}

ConfigChanges compare_configs(const Config& running, const Config& wanted) {
  ConfigChanges changes;
  changes.need_restart = keys_that_need_restart(running.daemon, wanted.daemon);
  for (const FeedConfig& feed : running.feeds) {
    if (find_feed(wanted, feed.name) == nullptr) changes.removed.push_back(feed.name);
  }
  for (const FeedConfig& feed : wanted.feeds) {
    const FeedConfig* had = find_feed(running, feed.name);
    if (had == nullptr) {
      changes.added.push_back(feed.name);
      continue;
    }
    FeedChange change = compare_feeds(*had, feed);
    if (change.keys.empty()) {
      ++changes.unchanged;
    } else {
      changes.changed.push_back(std::move(change));
    }
  }
  return changes;
}

}  // namespace batchwright
