#pragma once

#include <cstddef>

namespace batchwright {

/// Characters of a CURVE key, 32 bytes, as Z85 text, which has five characters for four bytes.
inline constexpr std::size_t kCurveKeyText = 40;

}  // namespace batchwright
