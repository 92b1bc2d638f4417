#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/features/sound/files/container.h"

namespace batchwright {

/// What the chunk `fmt ` of a WAVE file says of a sample.
struct WaveFormat {
  std::uint16_t channels = 0;
  std::uint64_t block_bytes = 0;    ///< A sample of each channel, or a block of coded ones.
  std::uint64_t block_samples = 1;  ///< Of a channel.

  bool is_coded() const { return block_samples > 1; }
};

/// Errors: invalid_argument: cut, or samples of another kind than PCM, float, G.711, ADPCM of
/// Microsoft and IMA, and GSM 6.10.
Result<WaveFormat> read_wave_format(const SoundBytes& chunk, bool is_big_endian);

/// The part of the bytes of samples that is sound.
struct WaveExtent {
  std::uint64_t bytes = 0;  ///< Without what follows the last whole sample of all channels.
  std::uint64_t samples = 0;
  std::uint64_t filling = 0;  ///< Samples behind these, of the last block.
};

/// `fact`: how many samples the writer counted, which says where coded ones end.
/// Errors: invalid_argument: it counts others than there are.
Result<WaveExtent> wave_extent(const WaveFormat& format, std::uint64_t bytes,
                               std::optional<std::uint64_t> fact);

/// "truncated: its header promises N bytes of samples, the file has M".
Error cut_samples(std::uint64_t promised, std::uint64_t there);

/// Zeros that fill the last block of a recorder's disk, at most.
inline constexpr std::uint64_t kMostFilling = 4095;

/// A name out of a file, as it may stand in a message: what is no printable ASCII becomes '?'.
std::string shown_name(std::string name);

/// A number of so many bytes.
std::string number_text(std::uint64_t number, std::size_t bytes, bool is_big_endian);

}  // namespace batchwright
