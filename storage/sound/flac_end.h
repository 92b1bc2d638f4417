#pragma once

#include <cstddef>
#include <span>

namespace batchwright {

/// Whether `tail`, the last bytes of a FLAC file, end with a whole frame: one that begins within
/// them, and whose last two bytes are its CRC-16. For files that do not say how long they are, the
/// only way to see that one was cut: decoders take the rest of a frame as the end.
bool ends_with_flac_frame(std::span<const std::byte> tail);

/// The most bytes that a frame may take: 65,535 samples of 16 bits.
inline constexpr std::size_t kFlacTailBytes = std::size_t{1} << 18;

}  // namespace batchwright
