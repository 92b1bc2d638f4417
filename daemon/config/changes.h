#pragma once

#include <string>
#include <vector>

#include "daemon/config/values.h"

namespace batchwright {

/// A feed that is in both configurations, and not the same.
struct FeedChange {
  std::string name;
  std::string keys;       ///< The keys that differ, such as "slots, plan.seed".
  bool in_place = false;  ///< None of them concerns batches or memory: no subscription ends.
};

/// What a new configuration asks of a daemon that runs with another.
struct ConfigChanges {
  std::vector<std::string> need_restart;  ///< Keys of [daemon] that cannot change in a daemon.
  std::vector<std::string> added;         ///< Names of feeds, in the order of the configuration.
  std::vector<std::string> removed;
  std::vector<FeedChange> changed;
  std::size_t unchanged = 0;  ///< Feeds.
};

/// Compares two configurations key by key. Threads: any.
ConfigChanges compare_configs(const Config& running, const Config& wanted);

/// The feed of this name; null when there is none.
const FeedConfig* find_feed(const Config& config, const std::string& name);

}  // namespace batchwright
