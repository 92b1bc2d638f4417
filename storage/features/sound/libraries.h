#pragma once

namespace batchwright {

/// Whether the build has decoders of sound, and libsoxr. A minimal one has neither: what a recipe
/// would need them for is refused when it is opened.
#ifdef BATCHWRIGHT_MINIMAL
inline constexpr bool kHasSoundLibraries = false;
#else
inline constexpr bool kHasSoundLibraries = true;
#endif

}  // namespace batchwright
