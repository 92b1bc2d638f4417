// Each row of the table of keys is whole, and right about itself.

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include "daemon/config/keys.h"
#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A file with one more line, in the key's table. It may be the second of `name` or `dataset`.
std::string file_with(const ConfigKey& key, const std::string& value) {
  const std::string line = std::string(key.row.name) + " = " + value + "\n";
  if (key.table == "daemon") return "[daemon]\n" + line + kFeed;
  return kFeed + (key.table == "feed" ? "" : "[" + key.table + "]\n") + line;
}

bool is_required(const ConfigKey& key) { return key.table == "feed" && key.by_default.empty(); }

/// For each key a value that is not its default, and goes with the defaults of the others.
const std::map<std::string, std::string> kOther{
    {"daemon.endpoints", R"(["ipc:///x"])"},
    {"daemon.events", R"("")"},
    {"daemon.stats", R"("")"},
    {"daemon.stats_hosts", R"(["a.b"])"},
    {"daemon.memory", R"("1GiB")"},
    {"daemon.assembly_threads", "3"},
    {"daemon.assembly_copy", R"("memcpy")"},
    {"daemon.socket_mode", R"("0600")"},
    {"daemon.socket_group", R"("root")"},
    {"daemon.allow_uids", R"(["root"])"},
    {"daemon.allow_gids", "[0]"},
    {"daemon.curve_secret_key_file", R"("/k")"},
    {"daemon.authorized_keys_file", "\"/a\"\ncurve_secret_key_file = \"/k\""},
    {"daemon.insecure", "true"},
    {"daemon.max_clients", "3"},
    {"daemon.queue_grace", R"("3s")"},
    {"daemon.feed_grace", R"("3s")"},
    {"daemon.log_level", R"("debug")"},
    {"daemon.log_format", R"("json")"},
    {"feed.lock", "false"},
    {"feed.slots", "3"},
    {"feed.huge_pages", R"("off")"},
    {"feed.on_corrupt", R"("skip")"},
    {"feed.max_corrupt_share", "0.5"},
    {"feed.verify", R"("always")"},
    {"feed.layout", R"("time-major")"},
    {"feed.padding", "{ a = 1.0 }"},
    {"feed.dtype", R"("float16")"},
    {"feed.max_window", "3"},
    {"feed.poison", "true"},
    {"feed.max_lead", "3"},
    {"feed.journal", R"("/j")"},
    {"feed.ledger", R"("/l")"},
    {"feed.follow", "true"},
};

/// What a reload makes of a change from the default to the other value.
std::string decision(const Config& before, const Config& after, const ConfigKey& key) {
  const std::string name(key.row.name);
  const ConfigChanges changes = compare_configs(before, after);
  for (const std::string& each : changes.need_restart) {
    if (each == "daemon." + name) return "restart";
  }
  for (const FeedChange& each : changes.changed) {
    if (each.keys == name) return each.in_place ? "in place" : "anew";
  }
  return changes.changed.empty() && changes.need_restart.empty() ? "nothing" : "another key";
}

std::string word_for(const ConfigKey& key) {
  switch (key.row.applies) {
    case Applies::restart: return "restart";
    case Applies::anew: return "anew";
    // The running daemon asks for the value itself: no feed changes, and nothing is in the way.
    case Applies::in_place: return key.table == "daemon" ? "nothing" : "in place";
  }
  return "";
}

}  // namespace

TEST_CASE("config: each key has a row with every part, and a name of its own") {
  std::set<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.table + "." + std::string(key.row.name);
    CAPTURE(name);
    CHECK(names.insert(name).second);
    CHECK_FALSE(key.row.name.empty());
    CHECK_FALSE(key.row.allowed.empty());
    CHECK_FALSE(key.row.sentence.empty());
    CHECK_FALSE(key.row.sentence.ends_with('.'));
    CHECK_FALSE(key.row.allowed.ends_with('.'));
  }
  CHECK(names.size() == daemon_keys().size() + feed_keys().size() + setting_rows().size());
}

TEST_CASE("config: the default of a row is what the struct has") {
  for (const ConfigKey& key : config_keys()) {
    if (key.by_default.empty()) continue;
    CAPTURE(key.row.name);
    const Config config = parsed(file_with(key, key.by_default));
    const FeedConfig& feed = config.feeds.at(0);
    for (const auto& each : daemon_keys()) CHECK(each.equal(config.daemon, DaemonConfig{}));
    for (const auto& each : feed_keys()) {
      if (!each.row.by_default.empty()) CHECK(each.equal(feed, FeedConfig{}));
    }
    for (const SettingRow& row : setting_rows()) {
      CHECK(get_setting(feed.served.plan, row.name) == get_setting(PlanSettings{}, row.name));
    }
  }
}

TEST_CASE("config: a key without a default is required of a feed") {
  for (const ConfigKey& key : config_keys()) {
    if (!is_required(key)) continue;
    CHECK(fault_of("[[feed]]\n")
              .find("feed." + std::string(key.row.name) + ": found nothing; allowed: " +
                    std::string(key.row.allowed)) != std::string::npos);
  }
}

TEST_CASE("config: words that a row allows are read") {
  for (const ConfigKey& key : config_keys()) {
    if (key.table == "feed.plan") continue;  // the planning room's tests see to them
    const bool yes_or_no = key.row.allowed == "true or false";
    const std::string letters = "abcdefghijklmnopqrstuvwxyz- ";
    if (key.row.allowed.find_first_not_of(letters) != std::string::npos && !yes_or_no) continue;
    std::istringstream words(yes_or_no ? "true false" : std::string(key.row.allowed));
    for (std::string word; words >> word;) {
      CHECK(fault_of(file_with(key, yes_or_no ? word : '"' + word + '"')) == "");
    }
  }
}

TEST_CASE("config: a reload does with each key what its row says") {
  const Config before = parsed(kFeed);
  for (const ConfigKey& key : config_keys()) {
    if (key.table == "feed.plan" || is_required(key)) continue;
    const std::string name = key.table + "." + std::string(key.row.name);
    CAPTURE(name);
    const auto other = kOther.find(name);
    REQUIRE_MESSAGE(other != kOther.end(), "kOther lacks a second value for this key");
    const Config after = parsed(file_with(key, other->second));
    CHECK(decision(before, after, key) == word_for(key));
    bool read = false;
    for (const auto& each : daemon_keys()) read |= !each.equal(before.daemon, after.daemon);
    for (const auto& each : feed_keys()) read |= !each.equal(before.feeds[0], after.feeds[0]);
    CHECK(read);
  }
}

TEST_CASE("config: a change of any setting of the plan makes a feed anew") {
  const Config before = parsed(kFeed);
  for (const char* line : {"order = \"sorted\"", "world = 2", "seed = 1", "last = \"drop\""}) {
    const auto changes = compare_configs(before, parsed(kFeed + "[feed.plan]\n" + line + "\n"));
    REQUIRE(changes.changed.size() == 1);
    CHECK_FALSE(changes.changed[0].in_place);
    CHECK(std::string(line).starts_with(changes.changed[0].keys.substr(5)));
  }
}
