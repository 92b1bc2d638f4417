#pragma once

#include <stdexcept>

namespace batchwright {

/// What must() throws: our own code is wrong.
struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

/// Checks, in a release too, a condition that our own code keeps true. A FeedCore catches the
/// BrokenInvariant, and fails its feed and no other.
inline void must(bool holds, const char* what) {
  if (!holds) throw BrokenInvariant(what);
}

}  // namespace batchwright
