#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "daemon/config/config.h"

using namespace batchwright;

namespace {

const std::string kSample = BATCHWRIGHT_SOURCE "/systemd/batchwrightd.toml";

struct Mention {
  bool commented = false;
  std::string value;  ///< As it stands in the file, with what follows on the line.
};

/// Every key that the sample mentions, set or as a comment.
std::map<std::string, Mention> mentions() {
  std::map<std::string, Mention> found;
  std::ifstream file(kSample);
  REQUIRE(file);
  const std::regex header(R"(^\[+([a-z.]+)\]+$)");
  const std::regex key(R"(^(# )?([a-z_]+) = (.*)$)");
  std::smatch match;
  std::string table;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, header)) table = match[1];
    if (!std::regex_match(line, match, key)) continue;
    const std::string name = table + "." + match[2].str();
    CAPTURE(name);
    CHECK(found.emplace(name, Mention{match[1].matched, match[3]}).second);
  }
  return found;
}

}  // namespace

TEST_CASE("config: the sample configuration holds exactly the defaults") {
  const auto config = load_config(kSample);
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  CHECK(config->daemon == DaemonConfig{});
  REQUIRE(config->feeds.size() == 1);
  const FeedConfig& feed = config->feeds[0];
  const FeedConfig defaults;
  CHECK(feed.name == "train");
  CHECK(feed.dataset == std::vector<std::filesystem::path>{"/var/lib/batchwright/train"});
  CHECK(feed.lock == defaults.lock);
  CHECK(feed.slots == defaults.slots);
  CHECK(feed.on_corrupt == defaults.on_corrupt);
  CHECK(feed.max_corrupt_share == defaults.max_corrupt_share);
  CHECK(feed.verify == defaults.verify);
  CHECK(feed.layout == defaults.layout);
  CHECK(feed.padding == defaults.padding);
  CHECK(feed.max_window == defaults.max_window);
  CHECK(feed.poison == defaults.poison);
  CHECK(feed.max_lead == defaults.max_lead);
  CHECK(feed.journal == defaults.journal);
  CHECK(feed.ledger == defaults.ledger);
  CHECK(feed.follow == defaults.follow);
  for (const SettingRow& row : setting_rows()) {
    CAPTURE(row.name);
    CHECK(get_setting(feed.plan, row.name) == get_setting(defaults.plan, row.name));
  }
}

TEST_CASE("config: the sample configuration mentions every key, and no other") {
  auto mentioned = mentions();
  for (const std::string& key : config_keys()) {
    CAPTURE(key);
    CHECK(mentioned.erase(key) == 1);
  }
  for (const auto& [key, mention] : mentioned) FAIL_CHECK("no such key: ", key);
}

TEST_CASE("config: the sample sets what has a default, and shows the rest by an example") {
  for (const auto& entry : mentions()) {
    const std::string& key = entry.first;
    const Mention& mention = entry.second;
    CAPTURE(key);
    const std::string prefix = "feed.plan.";
    const bool setting = key.starts_with(prefix);
    const std::string name = setting ? key.substr(prefix.size()) : "";
    CHECK(mention.commented == (setting && get_setting(PlanSettings{}, name).empty()));
    if (!mention.commented) continue;
    // Alone it may lack a companion, but its own value is one that is accepted.
    const auto config = parse_config(
        "[[feed]]\nname = \"a\"\ndataset = \"b\"\n[feed.plan]\n" + name + " = " + mention.value,
        "example");
    if (!config) CHECK(config.error().message.starts_with("example:4:1: feed.plan: "));
  }
}
