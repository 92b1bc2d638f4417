#include "daemon/config/keys.h"

#include "daemon/config/features_keys.h"
#include "daemon/config/live_feed.h"

namespace batchwright {

namespace {

/// The default of a setting as a file writes it; empty for one that is not set.
std::string plan_default(std::string_view name) {
  const std::string text = get_setting(PlanSettings{}, name);
  if (text.empty()) return text;
  // The planning room has plain words; a file has them in TOML.
  switch (setting_type(name)) {
    case SettingType::word:
    case SettingType::text: return '"' + text + '"';
    // TOML takes 1 for a whole number: the point says that others are allowed.
    case SettingType::real: return text.find_first_of(".e") == text.npos ? text + ".0" : text;
    case SettingType::whole_list:
    case SettingType::real_list: return '[' + text + ']';
    case SettingType::whole: break;
  }
  return text;
}

template <class Target>
void add_rows(std::span<const Key<Target>> keys, const char* table, std::vector<ConfigKey>& all) {
  for (const auto& key : keys) all.push_back({table, key.row, std::string(key.row.by_default)});
}

}  // namespace

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> all;
  add_rows(daemon_keys(), "daemon", all);
  add_rows(feed_keys(), "feed", all);
  add_rows(live_feed_keys(), "feed", all);
  all.push_back({"feed", fields_row(), {}});
  add_rows(live_keys(), "feed.live", all);
  for (const SettingRow& row : setting_rows()) {
    all.push_back({"feed.plan",
                   {row.name, row.allowed, {}, Applies::anew, row.help},
                   plan_default(row.name)});
  }
  add_rows(features_keys(), "feed.features", all);
  add_rows(style_keys(), "feed.style", all);
  return all;
}

}  // namespace batchwright
