// Texts of configurations, and what is wrong with them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "daemon/config/config.h"

namespace batchwright::test {

inline const std::string kFeed = "[[feed]]\nname = \"train\"\ndataset = \"/data/train\"\n";

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

/// The config of [daemon] with one line, which must be sound.
inline DaemonConfig daemon_with(const std::string& line) {
  return parsed("[daemon]\n" + line + "\n" + kFeed).daemon;
}

}  // namespace batchwright::test
