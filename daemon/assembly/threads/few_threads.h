#pragma once

namespace batchwright {

/// Whether assembly threads do the work for which other builds have helper and reader threads:
/// planning, looking up and asking for what is read ahead, waiting for cold pages.
#ifdef BATCHWRIGHT_MINIMAL
inline constexpr bool kFewThreads = true;
#else
inline constexpr bool kFewThreads = false;
#endif

}  // namespace batchwright
