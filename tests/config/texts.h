// Texts of configurations, and what is wrong with them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/config/live_feed.h"

namespace batchwright::test {

inline const std::string kFeed = "[[feed]]\nname = \"train\"\ndataset = \"/data/train\"\n";

/// A live feed that ends within [feed.live].
inline const std::string kLive =
    "[[feed]]\nname = \"live\"\nfields = { tokens = { dtype = \"int32\" } }\n"
    "[feed.live]\nmax_length = 100\n";

/// Whether a live feed alone has the key.
inline bool is_live(const ConfigKey& key) {
  if (key.table != "feed") return key.table == "feed.live";
  const auto keys = live_feed_keys();
  return key.row.name == fields_row().name ||
         std::any_of(keys.begin(), keys.end(),
                     [&](const auto& each) { return each.row.name == key.row.name; });
}

/// What is wrong with a text that is called "x.toml"; empty when nothing is.
inline std::string fault_of(const std::string& text) {
  const auto config = parse_config(text, "x.toml");
  if (config) return "";
  CHECK(config.error().code == ErrorCode::bad_configuration);
  return config.error().message;
}

/// The same for one line of [daemon], of [[feed]], of [feed.plan]. The line is line 2, 4 or 5.
inline std::string daemon_fault(const std::string& line) {
  return fault_of("[daemon]\n" + line + "\n" + kFeed);
}
inline std::string feed_fault(const std::string& line) { return fault_of(kFeed + line + "\n"); }
inline std::string plan_fault(const std::string& line) {
  return fault_of(kFeed + "[feed.plan]\n" + line + "\n");
}

inline Config parsed(const std::string& text) {
  auto config = parse_config(text, "x.toml");
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  return std::move(*config);
}

/// A live feed with one more line in [[feed]], which is line 4; in [feed.live], line 6; in
/// [feed.plan], line 7.
inline std::string with_feed_line(const std::string& line) {
  std::string text = kLive;
  return text.insert(text.find("[feed.live]"), line + "\n");
}
inline std::string with_live_line(const std::string& line) { return kLive + line + "\n"; }
inline std::string with_plan_line(const std::string& line) {
  return kLive + "[feed.plan]\n" + line + "\n";
}

/// The config of [daemon] with one line, which must be sound.
inline DaemonConfig daemon_with(const std::string& line) {
  return parsed("[daemon]\n" + line + "\n" + kFeed).daemon;
}

/// The live feed of a text, which must be sound.
inline LiveFeedSettings live_of(const std::string& text) {
  const Config config = parsed(text);
  REQUIRE(config.feeds.at(0).served.live);
  return *config.feeds[0].served.live;
}

}  // namespace batchwright::test
