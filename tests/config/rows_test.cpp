// Each row of the table of keys is whole, and right about itself.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "daemon/config/features_keys.h"
#include "daemon/config/keys.h"
#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A live feed with a line of a key. It takes the place of the line that the feed has already.
std::string live_with(const ConfigKey& key, const std::string& line) {
  std::string text = kLive;
  const std::string name = std::string(key.row.name) + " = ";
  if (const std::size_t at = text.find("\n" + name); at != text.npos) {
    text.erase(at + 1, text.find('\n', at + 1) - at);
  }
  const std::size_t table = text.find("[feed.live]\n");
  return key.table == "feed" ? text.insert(table, line) : text + line;
}

/// A file with one more line, in the key's table. It may be the second of `name` or `dataset`.
std::string file_with(const ConfigKey& key, const std::string& value,
                      const std::string& before = "") {
  const std::string line = before + std::string(key.row.name) + " = " + value + "\n";
  if (is_live(key)) return live_with(key, line);
  if (key.table == "daemon") return "[daemon]\n" + line + kFeed;
  if (key.table == "feed.style") return kFeed + "[[feed.style]]\n" + line;
  return kFeed + (key.table == "feed" ? "" : "[" + key.table + "]\n") + line;
}

/// Of a feed with a dataset.
bool is_required(const ConfigKey& key) {
  return key.table == "feed" && key.by_default.empty() && !is_live(key);
}

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
    {"daemon.max_producers", "3"},
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
    {"feed.row_cache", R"("1MiB")"},
    {"feed.padding", "{ a = 1.0 }"},
    {"feed.dtype", R"("float16")"},
    {"daemon.assembly_share", "0.5"},
    {"daemon.nice", "5"},
    {"daemon.cpu_affinity", R"("0-1,3")"},
    {"daemon.io_priority", R"("idle")"},
    {"feed.max_window", "3"},
    {"feed.poison", "true"},
    {"feed.max_lead", "3"},
    {"feed.journal", R"("/j")"},
    {"feed.queue_attempts", "3"},
    {"feed.ledger", R"("/l")"},
    {"feed.follow", "true"},
    {"feed.pool", R"("2GiB")"},
    {"feed.allow_nan", "true"},
    {"feed.fields", R"({ tokens = { dtype = "int64" } })"},
    {"feed.live.step", "{ frames = 400 }"},
    {"feed.live.window", "3"},
    {"feed.live.max_length", "99"},
    {"feed.live.linger", R"("2s")"},
    {"feed.live.groups", R"("batch")"},
    {"feed.live.group_timeout", R"("1s")"},
    {"feed.live.late_groups", R"("abandon")"},
    {"feed.live.max_staleness", "3"},
    {"feed.live.stale", R"("drop")"},
    {"feed.live.claim_timeout", R"("1s")"},
    {"feed.live.zero_most_stale", "3"},
    {"feed.live.reuse", "2"},
    {"feed.live.select", R"("uniform")"},
    {"feed.live.fresh_share", "0.25"},
    {"feed.live.pool_sequences", "99"},
    {"feed.live.record", R"("/r")"},
    {"feed.live.spool", R"("/s")"},
    {"feed.live.spool_sync", R"("commit")"},
    {"feed.plan.order_file", "\"/o\"\norder = \"file\""},
    {"feed.features.like", R"("kaldi")"},
    {"feed.features.features", R"("mfcc")"},
    {"feed.features.options", "{ mel_bands = 30 }"},
    {"feed.features.field", R"("fbank")"},
    {"feed.features.sample_rate", "16000"},
    {"feed.features.resampler", R"("sinc")"},
    {"feed.features.speeds", "[0.9, 1, 1.1]"},
    {"feed.features.dc_offset", R"("remove")"},
    {"feed.features.dither", "1.0"},
    {"feed.features.sound", R"("int16")"},
    {"feed.features.aligned", R"(["labels"])"},
    {"feed.features.cmvn", R"("utterance")"},
    {"feed.features.cmvn_variance", "false"},
    {"feed.features.cmvn_window", "300"},
    {"feed.features.cmvn_statistics", R"("/c")"},
    {"feed.features.cmvn_speaker", R"("speaker")"},
    {"feed.features.spec_augment", "true"},
    {"feed.features.mask_probability", "0.5"},
    {"feed.features.time_warp", "80"},
    {"feed.features.time_masks", "3"},
    {"feed.features.time_width", "50"},
    {"feed.features.time_share", "0.2"},
    {"feed.features.adaptive_masks", "0.04"},
    {"feed.features.adaptive_width", "0.04"},
    {"feed.features.freq_masks", "1"},
    {"feed.features.freq_width", "15"},
    {"feed.features.mask_mean", "true"},
    {"feed.features.mask_value", "-1.5"},
    {"feed.features.deltas", "2"},
    {"feed.features.delta_window", "3"},
    {"feed.features.delta_edges", R"("kaldi")"},
    {"feed.features.splice", "[5, 5]"},
    {"feed.features.stack", "4"},
    {"feed.features.stride", "3"},
    {"feed.features.stack_align", R"("left")"},
    {"feed.features.stack_end", R"("drop")"},
    {"feed.features.target_offset", "1"},
    {"feed.features.keep_one_of", "3"},
    {"feed.features.keep_offset", R"("random")"},
    {"feed.features.label_delay", "5"},
    {"feed.features.label_extend", "false"},
    {"feed.features.ignore_value", "-1"},
    {"feed.features.label_slack", "0"},
    {"feed.features.drawn", R"(["speed"])"},
    {"feed.features.draws", "1"},
    {"feed.features.max_seconds", "60"},
    {"feed.style.weight", "2"},
    {"feed.style.noise", R"(["/n"])"},
    {"feed.style.noise_probability", "0.5"},
    {"feed.style.snr_db", "[0, 10]"},
    {"feed.style.rooms", R"(["/r"])"},
    {"feed.style.room_probability", "0.5"},
    {"feed.style.room_normalise", "false"},
    {"feed.style.gain_db", "[-6, 6]"},
    {"feed.style.telephone_probability", "0.5"},
    {"feed.style.telephone_law", R"("a")"},
    {"feed.style.each_noise", R"(["/n", ["/a", "/b"]])"},
    {"feed.style.each_snr_db", "[[0, 10], [10, 20]]"},
    {"feed.style.each_rooms", R"(["/r"])"},
};

/// What a key's other value takes beside it.
const std::map<std::string, std::string> kBeside{
    {"feed.live.fresh_share", "reuse = 2\n"},
    {"feed.live.stale", "max_staleness = 3\n"},
    {"feed.features.options", "like = \"kaldi\"\n"},
    {"feed.features.target_offset", "stride = 3\n"},
    {"feed.features.keep_offset", "keep_one_of = 3\n"},
    {"feed.features.drawn", "speeds = [0.9, 1.1]\n"},
};

std::string beside(const ConfigKey& key) {
  const auto found = kBeside.find(key.table + "." + std::string(key.row.name));
  return found == kBeside.end() ? "" : found->second;
}

/// How a reload names a feed's key.
std::string shown_name(const ConfigKey& key) {
  const std::string name(key.row.name);
  if (key.table == "feed.style") return "style";
  if (key.table == "feed.live") return "live." + name;
  return key.table == "feed.features" ? "features." + name : name;
}

/// What a reload makes of a change from the default to the other value.
std::string decision(const Config& before, const Config& after, const ConfigKey& key) {
  const std::string name(key.row.name);
  const ConfigChanges changes = compare_configs(before, after);
  for (const std::string& each : changes.need_restart) {
    if (each == "daemon." + name) return "restart";
  }
  for (const FeedChange& each : changes.changed) {
    if (each.keys == shown_name(key)) return each.in_place ? "in place" : "anew";
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
  CHECK(names.size() == daemon_keys().size() + feed_keys().size() + live_feed_keys().size() + 1 +
                            live_keys().size() + setting_rows().size() + features_keys().size() +
                            style_keys().size());
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
    CHECK_FALSE(asks_anything(feed.served.features));
    if (!is_live(key)) continue;
    const LiveFeedSettings unset = *parsed(kLive).feeds.at(0).served.live;
    for (const auto& each : live_feed_keys()) CHECK(each.equal(*feed.served.live, unset));
    for (const auto& each : live_keys()) CHECK(each.equal(*feed.served.live, unset));
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
      CHECK(fault_of(file_with(key, yes_or_no ? word : '"' + word + '"', beside(key))) == "");
    }
  }
}

TEST_CASE("config: a reload does with each key what its row says") {
  for (const ConfigKey& key : config_keys()) {
    if (key.table == "feed.plan" || is_required(key)) continue;
    const std::string name = key.table + "." + std::string(key.row.name);
    CAPTURE(name);
    if (name == "feed.live.join") continue;  // takes another feed: live_test.cpp has it
    const auto other = kOther.find(name);
    REQUIRE_MESSAGE(other != kOther.end(), "kOther lacks a second value for this key");
    const std::string lines = beside(key);
    const Config before = parsed(is_live(key)    ? kLive + lines
                                 : lines.empty() ? kFeed
                                                 : kFeed + "[" + key.table + "]\n" + lines);
    const Config after = parsed(file_with(key, other->second, lines));
    // A style that does nothing is none, whatever its weight.
    if (name == "feed.style.weight") continue;
    CHECK(decision(before, after, key) == word_for(key));
    bool read = false;
    for (const auto& each : daemon_keys()) read |= !each.equal(before.daemon, after.daemon);
    for (const auto& each : feed_keys()) read |= !each.equal(before.feeds[0], after.feeds[0]);
    read |= before.feeds[0].served.features != after.feeds[0].served.features;
    read |= is_live(key) && decision(before, after, key) != "nothing";
    CHECK(read);
    // Feed::adjust() takes limits, no more and no less. What a step takes follows from select, too.
    if (key.table != "feed.live" || name == "feed.live.select") continue;
    const LiveLimits& had = before.feeds[0].served.live->pool;
    const LiveLimits& has = after.feeds[0].served.live->pool;
    CHECK((had != has) == (key.row.applies == Applies::in_place));
  }
}

TEST_CASE("config: a change of any setting of the plan has the feed made again") {
  const Config before = parsed(kFeed);
  for (const char* line : {"order = \"sorted\"", "world = 2", "seed = 1", "last = \"drop\""}) {
    const auto changes = compare_configs(before, parsed(kFeed + "[feed.plan]\n" + line + "\n"));
    REQUIRE(changes.changed.size() == 1);
    CHECK_FALSE(changes.changed[0].in_place);
    CHECK(std::string(line).starts_with(changes.changed[0].keys.substr(5)));
  }
}

TEST_CASE("config: every key of a recipe that is in use is in its text, and so in fingerprints") {
  // Two recipes with every step between them.
  const std::map<std::string, std::string> common{
      {"like", R"("kaldi")"}, {"speeds", "[1.0]"},  {"dither", "0.5"},     {"spec_augment", "true"},
      {"deltas", "1"},        {"label_delay", "1"}, {"mask_mean", "false"}};
  std::map<std::string, std::string> stacked = common;
  stacked.insert({{"cmvn", R"("sliding")"}, {"stack", "2"}, {"stride", "2"}});
  std::map<std::string, std::string> kept{
      {"cmvn", R"("speaker")"}, {"cmvn_speaker", R"("s")"}, {"cmvn_statistics", R"("/t")"},
      {"keep_one_of", "2"},     {"adaptive_masks", "0.1"},  {"adaptive_width", "0.1"}};
  kept.insert(common.begin(), common.end());
  const auto text_with = [](std::map<std::string, std::string> values, const std::string& name,
                            const std::string& value, const std::string& style) {
    if (!name.empty()) values[name] = value;
    std::string text = kFeed + "[feed.features]\n";
    for (const auto& [key, each] : values) text += key + " = " + each + "\n";
    text += "[[feed.style]]\nnoise = [\"/m\"]\nrooms = [\"/q\"]\ntelephone_probability = 0.1\n";
    text += style;
    const auto config = parse_config(text, "x.toml");
    return config ? recipe_text(config->feeds[0].served.features) : config.error().message;
  };
  // Its contents are read where a recipe is opened; a bound decides no row.
  const std::set<std::string> in_contents{"cmvn_statistics", "max_seconds"};
  for (const auto& key : features_keys()) {
    const std::string name(key.row.name);
    if (in_contents.contains(name)) continue;
    const std::string other = kOther.at("feed.features." + name);
    CAPTURE(name);
    bool told = false;
    for (const auto& base : {std::map<std::string, std::string>{}, common, stacked, kept}) {
      told |= text_with(base, "", "", "") != text_with(base, name, other, "") &&
              text_with(base, name, other, "").starts_with("features.");
    }
    CHECK(told);
  }
  for (const auto& key : style_keys()) {
    const std::string name(key.row.name);
    CAPTURE(name);
    const std::string line = name + " = " + kOther.at("feed.style." + name) + "\n";
    // TOML has no key twice: those of the style above are told by their line in it.
    if (line.starts_with("noise =") || line.starts_with("rooms =") ||
        line.starts_with("telephone_probability")) {
      CHECK(text_with(common, "", "", "").find(name + " = ") != std::string::npos);
      continue;
    }
    CHECK(text_with(common, "", "", "") != text_with(common, "", "", line));
    CHECK(text_with(common, "", "", line).starts_with("features."));
  }
}

TEST_CASE("config: whatever a key names on disk is among the named paths") {
  for (const ConfigKey& key : config_keys()) {
    const std::string_view allowed = key.row.allowed;
    const bool names_files = allowed.find("path of a ") != std::string_view::npos ||
                             allowed.find("datasets") != std::string_view::npos;
    if (!names_files || is_required(key)) continue;
    const std::string full = key.table + "." + std::string(key.row.name);
    CAPTURE(full);
    const std::string& other = kOther.at(full);
    const Config config = parsed(file_with(key, other));
    // The first text of the value, which is a path.
    const std::size_t begin = other.find('/');
    const std::string path = other.substr(begin, other.find('"', begin) - begin);
    const auto paths = named_paths(config);
    CHECK(std::find(paths.begin(), paths.end(), path) != paths.end());
  }
  const auto paths = named_paths(parsed(kFeed));
  CHECK(std::find(paths.begin(), paths.end(), "/data/train") != paths.end());
}
