#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The treatment of a file of several channels.
enum class ChannelChoice : std::uint8_t {
  only,   ///< Refuse it.
  first,  ///< Take the first.
  mix,    ///< Take the mean of all.
};

/// "only", "first" or "mix".
std::string_view channel_name(ChannelChoice channels);

/// The choice of that name; empty for another.
std::optional<ChannelChoice> parse_channel(std::string_view name);

/// One channel of sound.
struct Audio {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::vector<float> samples;     ///< -1 .. 1, at least one.
};

/// The contents of a file's header.
struct AudioHeader {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::optional<std::uint64_t>
      samples;        ///< Samples of a channel; empty: its writer could not know.
  bool wide = false;  ///< Samples of more than 16 bits.
};

/// Threads: any. Errors: as read_audio().
Result<AudioHeader> read_audio_header(const std::filesystem::path& path);

/// Samples of a channel, as far as the header tells; 0 where it cannot be read. Threads: any.
std::uint64_t expected_samples(const std::filesystem::path& path);

/// What is known of a file once all of it was decoded.
struct AudioExtent {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::uint64_t samples = 0;      ///< Samples of the channel that was taken, at least one.
  bool wide = false;              ///< Samples of more than 16 bits.
};

/// Takes the next samples of one channel, -1 .. 1.
using TakeSamples = std::function<void(std::span<const float>)>;

/// Decodes a whole file of wav, flac, mp3, ogg or opus, block by block, in bounded memory. What a
/// header says of the length is compared with what is there, and never believed. Threads: any.
/// Errors: invalid_argument, naming file and reason: it cannot be opened, is empty, is not audio,
/// ends before its header says, has several channels, holds samples that are no numbers. What was
/// handed to `take` before the error means nothing.
Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take);

/// Decodes a file that lies in memory, as it was taken into a dataset. `only` takes the first
/// channel: how many there are was checked then. How many samples there should be is the caller's
/// to compare. Threads: any. Errors: corrupt_record: not audio, damaged, or with samples that are
/// no numbers.
Result<AudioExtent> decode_bytes(std::span<const std::byte> file, ChannelChoice channels,
                                 const TakeSamples& take);

/// All of the file's samples. Threads: any. Errors: as decode_audio().
Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels);

}  // namespace batchwright
