#pragma once

#include <string_view>

namespace batchwright {

/// The commit that the program was built from, with a + where files differed from it; empty where
/// it was built from no checkout. Of the target build_commit, the one that a new commit compiles
/// again.
std::string_view build_commit();

}  // namespace batchwright
