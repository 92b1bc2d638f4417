#include "daemon/config/changes.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "daemon/config/features_keys.h"
#include "daemon/config/keys.h"
#include "daemon/config/live_feed.h"

namespace batchwright {
namespace {

/// Names of keys, in the order in which the rows have them.
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

/// Adds the keys that apply so and differ.
template <class Target>
void add_differing(std::span<const Key<Target>> keys, Applies applies, const Target& a,
                   const Target& b, Names& names) {
  for (const auto& key : keys) {
    names.add_if(key.row.applies == applies && !key.equal(a, b), key.row.name);
  }
}

/// Every setting of a plan makes other batches, so none of them applies in place.
void compare_plans(const PlanSettings& a, const PlanSettings& b, Names& names) {
  for (const SettingRow& row : setting_rows()) {
    names.add_if(get_setting(a, row.name) != get_setting(b, row.name),
                 "plan." + std::string(row.name));
  }
}

/// Neither does any setting by which rows are made.
void compare_recipes(const RecipeSettings& a, const RecipeSettings& b, Names& names) {
  for (const auto& key : features_keys()) {
    names.add_if(!key.equal(a, b), "features." + std::string(key.row.name));
  }
  names.add_if(a.styles != b.styles, "style");
}

/// Of what a live feed alone has, its limits do.
void compare_live(const std::optional<LiveFeedSettings>& a,
                  const std::optional<LiveFeedSettings>& b, Names& anew, Names& in_place) {
  anew.add_if(a.has_value() != b.has_value(), "live");
  if (!a || !b) return;
  for (const auto& key : live_feed_keys()) anew.add_if(!key.equal(*a, *b), key.row.name);
  anew.add_if(a->schema != b->schema, fields_row().name);
  for (const auto& key : live_keys()) {
    Names& names = key.row.applies == Applies::in_place ? in_place : anew;
    names.add_if(!key.equal(*a, *b), "live." + std::string(key.row.name));
  }
}

FeedChange compare_feeds(const FeedConfig& a, const FeedConfig& b) {
  Names anew, in_place;
  add_differing(feed_keys(), Applies::anew, a, b, anew);
  add_differing(feed_keys(), Applies::in_place, a, b, in_place);
  compare_live(a.served.live, b.served.live, anew, in_place);
  compare_plans(a.served.plan, b.served.plan, anew);
  anew.add_if(a.order_file_state != b.order_file_state &&
                  a.served.plan.order_file == b.served.plan.order_file,
              "what plan.order_file has");
  compare_recipes(a.served.features, b.served.features, anew);
  // One key that needs another feed is enough, whatever else has changed.
  const std::string between = in_place.empty() || anew.empty() ? "" : ", ";
  return {a.served.name, anew.text() + between + in_place.text(), anew.empty()};
}

}  // namespace

const FeedConfig* find_feed(const Config& config, const std::string& name) {
  const auto found =
      std::find_if(config.feeds.begin(), config.feeds.end(),
                   [&name](const FeedConfig& feed) { return feed.served.name == name; });
  return found == config.feeds.end() ? nullptr : &*found;
}

ConfigChanges compare_configs(const Config& running, const Config& wanted) {
  ConfigChanges changes;
  Names restart;
  add_differing(daemon_keys(), Applies::restart, running.daemon, wanted.daemon, restart);
  for (const std::string& name : restart.all()) changes.need_restart.push_back("daemon." + name);
  for (const FeedConfig& feed : running.feeds) {
    if (find_feed(wanted, feed.served.name) == nullptr) changes.removed.push_back(feed.served.name);
  }
  for (const FeedConfig& feed : wanted.feeds) {
    const FeedConfig* had = find_feed(running, feed.served.name);
    if (had == nullptr) {
      changes.added.push_back(feed.served.name);
      continue;
    }
    // No key that differs means the same feed: its clients notice nothing of the reload.
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
