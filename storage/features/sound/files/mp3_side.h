#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace batchwright {

/// The head of a frame of MPEG audio.
struct Mp3Head {
  std::uint32_t version = 0;  // bits: 3 of MPEG 1, 2 of 2, 0 of 2.5
  std::uint32_t layer = 0;
  std::uint32_t rate = 0;
  std::uint32_t channels = 0;
  std::uint64_t bytes = 0;  // of the frame; 0: free, which its head does not tell
  bool has_crc = false;

  static constexpr std::size_t kBytes = 4;

  bool is_like(const Mp3Head& other) const {
    return version == other.version && layer == other.layer && rate == other.rate &&
           channels == other.channels;
  }
  /// Bytes of the side information, which stands behind the head and its checksum.
  std::size_t side_bytes() const {
    return version == 3 ? (channels == 1 ? 17 : 32) : (channels == 1 ? 9 : 17);
  }
  /// Where the side information begins in the frame.
  std::size_t side_at() const { return kBytes + (has_crc ? 2 : 0); }
};

/// Head, checksum and side information have no more bytes than this.
inline constexpr std::size_t kMostMp3Side = Mp3Head::kBytes + 2 + 32;

std::optional<Mp3Head> mp3_head(std::span<const std::byte> bytes);

/// What the side information of a frame of layer 3 says. A frame's coded sound may begin up to 511
/// bytes before it, in the frames before, whose bytes beyond their own sound it uses.
struct Mp3Side {
  std::uint64_t back = 0;  ///< Bytes that it needs of the frames before.
  /// Why no decoder can decode the frame, whatever stands before it.
  std::optional<std::string> fault;
};

/// `bytes`: the frame's, kMostMp3Side of them or all it has.
Mp3Side mp3_side(const Mp3Head& head, std::span<const std::byte> bytes);

}  // namespace batchwright
