// A feed with a table [feed.live]: what it has, and what it cannot have.

#include "daemon/config/live_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"

namespace batchwright {

namespace {

/// Settings of [feed.plan] that decide something of a live feed's steps.
constexpr std::array<std::string_view, 4> kPlanKeys{"world", "seed", "cut", "quadratic_scale"};

bool is_plan_key(std::string_view name) {
  return std::find(kPlanKeys.begin(), kPlanKeys.end(), name) != kPlanKeys.end();
}

template <class Keys>
auto find_key(const Keys& keys, std::string_view name) {
  return std::find_if(keys.begin(), keys.end(),
                      [name](const auto& key) { return key.row.name == name; });
}

bool is_live_key(std::string_view name) {
  const auto keys = live_feed_keys();
  return name == fields_row().name || find_key(keys, name) != keys.end();
}

/// Whether a key of [[feed]] concerns stored data.
bool is_stored_key(std::string_view name) {
  const auto keys = feed_keys();
  const auto key = find_key(keys, name);
  if (key != keys.end()) return key->row.of == OfFeeds::stored;
  return name == "features" || name == "style";
}

/// Checks the dtype and the kind of the last field.
void check_field(const ConfigNode& entry, const Schema& schema, Complaints& complaints) {
  const std::string path = "feed.fields." + printable(entry.key);
  const ConfigNode* kind = entry.find("kind");
  const std::string found = kind == nullptr ? "nothing" : describe_found(*kind);
  const bool first = schema.fields.size() == 1;
  const bool primary = schema.fields.back().kind == FieldKind::primary;
  if (entry.find("dtype") == nullptr) {
    complaints.add(entry, path + ".dtype", "found nothing", field_keys().front().row.allowed);
  }
  if (first && !primary) {
    complaints.add(*kind, path + ".kind", "found " + found,
                   "primary or nothing, as the first field is the primary one");
  } else if (!first && primary && (kind == nullptr || found == "\"primary\"")) {
    complaints.add(kind == nullptr ? entry : *kind, path + ".kind", "found " + found,
                   "aligned independent scalar, as the first field is the primary one");
  }
}

/// Reads the fields in the order of the file: the first is the primary one.
void read_fields(const ConfigNode& node, Schema& out, Complaints& complaints) {
  if (node.table() == nullptr || node.table()->entries.empty()) {
    const bool empty = node.table() != nullptr;
    const std::string found = empty ? "an empty table" : describe_found(node);
    return complaints.add(node, "feed.fields", "found " + found, fields_row().allowed);
  }
  std::vector<const ConfigNode*> entries;
  for (const ConfigNode& entry : node.table()->entries) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](const ConfigNode* a, const ConfigNode* b) {
    return std::pair(a->line, a->column) < std::pair(b->line, b->column);
  });
  const std::size_t before = complaints.count();
  Schema schema;
  for (const ConfigNode* entry : entries) {
    // A field without a kind is a primary one, which the first alone may be.
    FieldSpec& field = schema.fields.emplace_back();
    field.name = entry->key;
    complaints.read_keys(*entry, "feed.fields." + printable(entry->key), field, field_keys());
    if (entry->table() != nullptr) check_field(*entry, schema, complaints);
    // A schema has what comes before its last field, too: behind the first fault it says no more.
    if (complaints.count() != before) continue;
    if (const auto sound = validate(schema); !sound) {
      complaints.add(*entry, "feed.fields", sound.error().message);
    }
  }
  out = std::move(schema);
}

/// What a live feed takes of [feed.plan]: the planner's other settings decide nothing there.
void check_plan(const ConfigNode& table, const PlanSettings& plan, Complaints& complaints) {
  if (table.table() == nullptr) return;  // read_plan() has complained
  for (const ConfigNode& entry : table.table()->entries) {
    const std::string path = "feed.plan." + entry.key;
    // An unknown key has its complaint.
    const auto rows = setting_rows();
    const bool known = std::any_of(rows.begin(), rows.end(),
                                   [&](const SettingRow& row) { return row.name == entry.key; });
    if (known && !is_plan_key(entry.key)) {
      complaints.add(entry, path, fmt::format("found {} in a live feed", describe_found(entry)),
                     fmt::format("{} there", fmt::join(kPlanKeys, " ")));
    }
    const Cut cut = plan.cut;
    if (entry.key == "cut" && (cut == Cut::frames || cut == Cut::real_frames)) {
      complaints.add(entry, path, fmt::format("found {} in a live feed", describe_found(entry)),
                     "fixed dynamic quadratic there");
    }
    if (entry.key == "quadratic_scale" && cut != Cut::quadratic) {
      complaints.add(entry, path,
                     fmt::format("found {} without cut = \"quadratic\"", describe_found(entry)),
                     "both, or neither");
    }
  }
}

/// Fields that are joined come behind those that are pushed, of which the first is one.
void check_join(const ConfigNode& node, LiveFeedSettings& live, Complaints& complaints) {
  std::vector<FieldSpec>& fields = live.schema.fields;
  const std::vector<std::string>& names = live.join.fields;
  const auto is_joined = [&names](const FieldSpec& field) {
    return std::find(names.begin(), names.end(), field.name) != names.end();
  };
  for (const std::string& name : names) {
    const auto found = live.schema.find(name);
    const bool is_twice = std::count(names.begin(), names.end(), name) != 1;
    if (found && *found != 0 && !is_twice) continue;
    complaints.add(node, "feed.live.join",
                   fmt::format("found \"{}\"{}", printable(name), is_twice ? " twice" : ""),
                   "fields of feed.fields but the first, which producers push");
    return;
  }
  // What is accepted would outlive the data and the recipe of its rows.
  if (!live.spool.empty()) {
    complaints.add(node, "feed.live.join", "found beside feed.live.spool", "one of the two");
  }
  std::stable_partition(fields.begin(), fields.end(), std::not_fn(is_joined));
  const auto joined = fields.end() - static_cast<std::ptrdiff_t>(names.size());
  std::transform(joined, fields.end(), live.join.fields.begin(),
                 [](const FieldSpec& field) { return field.name; });
}

/// Which key of a live feed a fault of the pool's settings is about, and where that key stands or
/// would stand.
struct FaultPlace {
  const ConfigNode* node;
  std::string path;
};

FaultPlace place_of(std::string_view key, const ConfigNode& feed) {
  // "step.groups" is about step.
  const std::string_view name = key.substr(0, key.find('.'));
  const bool of_plan = is_plan_key(name);
  const bool of_feed = name == "pool_bytes";
  const ConfigNode* table = of_feed ? &feed : feed.find(of_plan ? "plan" : "live");
  const ConfigNode* entry = table == nullptr ? nullptr : table->find(of_feed ? "pool" : name);
  if (entry == nullptr) entry = table == nullptr ? &feed : table;
  if (of_feed) return {entry, "feed.pool"};
  return {entry, fmt::format("feed.{}.{}", of_plan ? "plan" : "live", key)};
}

/// The pool's settings name all their keys "live.KEY"; some of them stand elsewhere in a file.
std::string in_words_of_file(std::string text) {
  for (const std::string_view key : kPlanKeys) {
    const std::string name = fmt::format("live.{}", key);
    const std::size_t at = text.find(name);
    if (at != text.npos) text.replace(at, name.size(), fmt::format("plan.{}", key));
  }
  return text;
}

void check_pool(const ConfigNode& node, LiveSettings& pool, Complaints& complaints) {
  const ConfigNode& table = *node.find("live");
  // The memory of a batch is reserved for the longest sequence.
  const bool in_frames = pool.step_unit == StepUnit::frames || pool.step_unit == StepUnit::lanes;
  if (pool.max_length == 0 && !in_frames) {
    const auto keys = live_keys();
    return complaints.add(
        table, "feed.live.max_length", "found nothing",
        fmt::format("{}, as step is not of frames", find_key(keys, "max_length")->row.allowed));
  }
  const ConfigNode* const window = table.find("window");
  if (window != nullptr && pool.step_unit == StepUnit::lanes) {
    return complaints.add(*window, "feed.live.window",
                          fmt::format("found {} with step.lanes", describe_found(*window)),
                          "nothing there, as lanes take sequences in their order");
  }
  const auto fault = find_fault(pool);
  if (!fault) {
    pool = *check_live_settings(pool);
    return;
  }
  const FaultPlace at = place_of(fault->key, node);
  complaints.add(*at.node, at.path, "found " + fault->found, in_words_of_file(fault->allowed));
}

}  // namespace

void refuse_live_keys(const ConfigNode& feed, Complaints& complaints) {
  for (const ConfigNode& entry : feed.table()->entries) {
    if (!is_live_key(entry.key)) continue;
    complaints.add(entry, "feed." + entry.key,
                   fmt::format("found {} without [feed.live]", describe_found(entry)),
                   "in a live feed, which has a table [feed.live]");
  }
}

void read_live_feed(const ConfigNode& node, FeedConfig& feed, Complaints& complaints) {
  LiveFeedSettings& live = feed.served.live.emplace(default_live_feed());
  const ConfigNode& table = *node.find("live");
  for (const ConfigNode& entry : node.table()->entries) {
    const auto keys = live_feed_keys();
    const auto key = find_key(keys, entry.key);
    if (key != keys.end()) complaints.read_key(entry, "feed." + entry.key, *key, live);
    if (is_stored_key(entry.key)) {
      complaints.add(entry, "feed." + entry.key,
                     fmt::format("found {} beside feed.live at {}", describe_found(entry),
                                 complaints.place_of(table)),
                     "one of the two, as a live feed has no stored data");
    }
  }
  if (const ConfigNode* fields = node.find("fields")) {
    read_fields(*fields, live.schema, complaints);
  } else {
    complaints.add(node, "feed.fields", "found nothing", fields_row().allowed);
  }
  if (table.table() == nullptr) {
    complaints.add(table, "feed.live", fmt::format("found {}", describe_found(table)),
                   "a table [feed.live], which makes the feed a live one");
  } else {
    complaints.read_keys(table, "feed.live", live, live_keys());
  }
  if (const ConfigNode* plan = node.find("plan")) {
    check_plan(*plan, feed.served.plan, complaints);
  }
}

void check_live_feed(const ConfigNode& node, FeedConfig& feed, Complaints& complaints) {
  LiveFeedSettings& live = *feed.served.live;
  const PlanSettings& plan = feed.served.plan;
  live.pool.world = plan.world;
  live.pool.seed = plan.seed;
  live.pool.cut = plan.cut;
  live.pool.quadratic_scale = plan.quadratic_scale;
  live.pool.frame_bytes.clear();
  if (const ConfigNode* join = node.find("live")->find("join")) check_join(*join, live, complaints);
  // What is joined takes no room in the pool.
  for (std::size_t f = 0; f < live.pushed(); ++f) {
    live.pool.frame_bytes.push_back(frame_bytes(live.schema.fields[f]));
  }
  check_pool(node, live.pool, complaints);
  // The fields are here, so that what names them is checked before the feed is opened.
  const auto casts = check_casts(feed.served.casts, live.schema);
  if (!casts) complaints.add(*node.find("dtype"), "feed.dtype", casts.error().message);
  const auto padding =
      check_padding(feed.served.padding, cast_schema(feed.served.casts, live.schema));
  if (casts && !padding) {
    complaints.add(*node.find("padding"), "feed.padding", padding.error().message);
  }
}

}  // namespace batchwright
