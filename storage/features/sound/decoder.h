#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "storage/features/sound/files/container.h"

namespace batchwright {

/// Decodes the sound of a container from its begin on, or from any sample. What it says of lengths
/// is nothing that counts. Threads: one at a time.
class SoundDecoder {
 public:
  struct Format {
    std::uint32_t sample_rate = 0;  ///< Hz
    std::size_t channels = 1;
    bool wide = false;  ///< Samples of more than 16 bits.
  };

  virtual ~SoundDecoder() = default;

  virtual const Format& format() const = 0;
  /// The next samples, of all channels in turn, -1 .. 1; empty at the end. Until the next call.
  virtual std::span<const float> next() = 0;
  /// Goes to a sample; false where it cannot.
  virtual bool seek(std::uint64_t sample) = 0;
  /// What was wrong with the bytes, once the end was reached.
  virtual std::optional<std::string> trouble() const = 0;
};

/// Both keep a copy of what they need of `sound`, but not the bytes in memory.
/// Errors: invalid_argument, without the file's name: not what a decoder reads.
Result<std::unique_ptr<SoundDecoder>> open_sndfile(const SoundContainer& sound);
Result<std::unique_ptr<SoundDecoder>> open_mp3(const SoundContainer& sound);

inline Result<std::unique_ptr<SoundDecoder>> open_decoder(const SoundContainer& sound) {
  return sound.is_mp3 ? open_mp3(sound) : open_sndfile(sound);
}

}  // namespace batchwright
