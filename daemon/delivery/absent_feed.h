#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A feed that is configured and cannot be served just now: its data are missing, or failed.
struct AbsentFeed {
  std::string name;
  std::vector<std::filesystem::path> dataset;
  Error why;  ///< Without the feed's name.
  /// By which clients know the arena of the feed before it; 0: there was none.
  std::uint32_t arena_number = 0;

  /// What its clients are told.
  Error told() const { return {why.code, "feed " + name + " is not served: " + why.message}; }
};

/// Whether a feed that failed so may be served again without anybody touching the configuration:
/// data that come back, a disk that has room again, memory that others return. Its clients wait.
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
