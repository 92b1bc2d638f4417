#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A feed that is configured and not served: it is being opened, or cannot be served for now.
struct AbsentFeed {
  std::string name;
  std::vector<std::filesystem::path> dataset;
  Error why;  ///< The reason, without the feed's name.
  /// The arena's number of the feed before it, as clients know it; empty: there was none.
  std::optional<ArenaNumber> arena = {};
  /// It is being opened for the first time: it is not known yet whether it can be served.
  bool opening = false;

  /// The error that its clients get.
  Error told() const {
    if (opening) return {why.code, "feed " + name + " is being opened"};
    return {why.code, "feed " + name + " is not served: " + why.message};
  }
};

/// A feed of a daemon that starts.
inline AbsentFeed being_opened(const std::string& name,
                               const std::vector<std::filesystem::path>& dataset) {
  return {name, dataset, {ErrorCode::busy, "it is being opened"}, {}, true};
}

/// Whether a feed that failed so may be served again without a change of the configuration: data
/// that come back, a disk that has room again, memory that others return. Its clients wait.
constexpr bool is_passing(ErrorCode code) {
  switch (code) {
    case ErrorCode::store_unavailable:
    case ErrorCode::io_error:
    case ErrorCode::busy:
    case ErrorCode::timed_out:
    case ErrorCode::disconnected: return true;
    default: return false;
  }
}

}  // namespace batchwright
