#pragma once

#include <span>
#include <string_view>

#include "daemon/config/read.h"
#include "daemon/config/values.h"

namespace batchwright {

/// One key of a table whose values go into a Target.
template <class Target>
struct Key {
  std::string_view name;
  std::string_view allowed;
  Fault (*set)(Target&, const ConfigNode&);  ///< Null: a table of its own, read elsewhere.
};

/// The keys of [daemon] and of [[feed]], in the order they are documented in. Those of [feed.plan]
/// are the planning room's.
std::span<const Key<DaemonConfig>> daemon_keys();
std::span<const Key<FeedConfig>> feed_keys();

}  // namespace batchwright
