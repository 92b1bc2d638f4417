#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
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

/// A part of a sound, in seconds, or all of it. It begins and ends at the samples next to these
/// times.
struct SoundPart {
  double begin = 0;
  double end = std::numeric_limits<double>::infinity();  ///< Infinity: the sound's own.

  /// How far the end may lie behind the sound's own, which it then is: times are often rounded to
  /// more than a sample (Kaldi's extract-segments takes the same).
  static constexpr double kOvershoot = 0.5;

  bool whole() const { return begin == 0 && end == std::numeric_limits<double>::infinity(); }
};

/// Threads: any. Errors: as read_audio().
Result<AudioHeader> read_audio_header(const std::filesystem::path& path);

/// Samples of a channel, as far as the header tells; 0 where it cannot be read. Threads: any.
std::uint64_t expected_samples(const std::filesystem::path& path, const SoundPart& part = {});

/// What is known of a file once all of it was decoded.
struct AudioExtent {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::uint64_t samples = 0;      ///< Samples of the channel that was taken, at least one.
  bool wide = false;              ///< Samples of more than 16 bits.
};

/// Samples that a sequence may have, and that are read into memory at most: 9 hours at 16 kHz.
inline constexpr std::uint64_t kMostSequence = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint64_t kMostInMemory = std::uint64_t{1} << 29;

/// Takes the next samples of one channel, -1 .. 1.
using TakeSamples = std::function<void(std::span<const float>)>;

/// Decodes a whole file of wav, flac, mp3, ogg or opus, or a part of one, block by block, in
/// bounded memory. What a header says of the length is compared with what is there, and never
/// believed; of a part, as far as it goes. A part has the samples that the whole has there: to
/// rounding of mp3, and within 1e-3 of opus, whose decoder remembers. Threads: any.
/// Errors: invalid_argument, naming file and reason: it cannot be opened, is empty, is not audio,
/// ends before its header says or more than SoundPart::kOvershoot before the part does, has several
/// channels, holds samples that are no numbers, or more than `most` of them. What was handed to
/// `take` before the error, `most` samples and one more at most, means nothing.
Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take, const SoundPart& part = {},
                                 std::uint64_t most = kMostSequence);

/// Memory that decoding takes beside the file and the samples that were handed over: buffers and
/// the tables of the libraries, for files of up to 8 channels.
inline constexpr std::uint64_t kDecoderBytes = std::uint64_t{4} << 20;

/// Decodes a file that lies in memory, as it was taken into a dataset. `only` takes the first
/// channel: how many there are was checked then. At most `most` samples and one more are decoded
/// and handed over: where there are more, the extent has `most` + 1, and what the rest is like
/// stays unknown. How many there should be is the caller's to compare. Threads: any. Errors:
/// corrupt_record: not audio, damaged, without samples, or with samples that are no numbers.
Result<AudioExtent> decode_bytes(std::span<const std::byte> file, ChannelChoice channels,
                                 const TakeSamples& take, std::uint64_t most);

/// All samples of the file, or of the part, up to kMostInMemory. Threads: any. Errors: as
/// decode_audio().
Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels,
                         const SoundPart& part = {});

}  // namespace batchwright
