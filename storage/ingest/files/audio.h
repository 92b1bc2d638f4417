#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The treatment of a file of several channels.
enum class ChannelChoice : std::uint8_t {
  only,   ///< Refuse it.
  first,  ///< Take the first.
  mix,    ///< Take the mean of all.
};

/// One channel of sound.
struct Audio {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::vector<float> samples;     ///< -1 .. 1, at least one.
};

/// The contents of a file's header.
struct AudioHeader {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::optional<std::uint64_t>
      samples;  ///< Samples of a channel; empty: its writer could not know.
};

/// Threads: any. Errors: as read_audio().
Result<AudioHeader> read_audio_header(const std::filesystem::path& path);

/// Reads a whole wav, flac or ogg file. Threads: any.
/// Errors: invalid_argument, naming file and reason: it cannot be opened, is empty, is not audio,
/// ends before its header says, has several channels, holds samples that are no numbers.
Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels);

}  // namespace batchwright
