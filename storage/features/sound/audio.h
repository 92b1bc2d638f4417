#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The treatment of a file of several channels.
enum class ChannelChoice : std::uint8_t {
  only,   ///< Refuse it.
  first,  ///< Take the first.
  mix,    ///< Take the mean of all.
  each,   ///< Each is a sound of its own: SoundPart names the one that is taken.
};

/// "only", "first", "mix" or "each".
std::string_view channel_name(ChannelChoice channels);

/// The choice of that name; empty for another.
std::optional<ChannelChoice> parse_channel(std::string_view name);

/// One channel of sound.
struct Audio {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::vector<float> samples;     ///< -1 .. 1, at least one.
  bool cancelled = false;         ///< As AudioExtent has it.
  bool lacks_begin = false;       ///< As AudioExtent has it.
};

/// A part of a sound, in seconds, or all of it; and of several channels one. It begins and ends at
/// the samples next to these times.
struct SoundPart {
  double begin = 0;
  double end = std::numeric_limits<double>::infinity();  ///< Infinity: the sound's own.
  std::uint32_t channel = 0;                             ///< From 1; 0: as ChannelChoice says.

  /// How far the end may lie behind the sound's own, which it then is: times are often rounded to
  /// more than a sample (Kaldi's extract-segments takes the same).
  static constexpr double kOvershoot = 0.5;

  /// All of its time.
  bool whole() const { return begin == 0 && end == std::numeric_limits<double>::infinity(); }
};

/// What is known of a file once all of it was decoded.
struct AudioExtent {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::uint64_t samples = 0;      ///< Samples of the channel that was taken, at least one.
  bool wide = false;              ///< Samples of more than 16 bits.
  /// The mean of its channels has next to nothing of the first: they are of opposite phase.
  bool cancelled = false;
  /// An MP3 that was cut out of a longer one: what its first frames need stood before them, and
  /// they are silence or noise. Of a part: they lie in it.
  bool lacks_begin = false;
};

/// Samples that a sequence may have, and that are read into memory at most: 9 hours at 16 kHz.
inline constexpr std::uint64_t kMostSequence = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint64_t kMostInMemory = std::uint64_t{1} << 29;

/// How long a sound may be: as both say.
struct MostSound {
  std::uint64_t samples = kMostSequence;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Takes the next samples of one channel, -1 .. 1.
using TakeSamples = std::function<void(std::span<const float>)>;

struct SoundContainer;

/// A file of sound that was opened, and whose container was looked at to its end: a file that was
/// cut, that is damaged where its container shows it, or whose header says other sizes or lengths
/// than what is there, is no such object. What its samples are like is seen when they are decoded.
/// The file is what its bytes are, whatever its name says, and is read in one way wherever they
/// lie: WAVE (RIFF, RIFX, RF64, W64), FLAC, Ogg (Vorbis, Opus, FLAC), MP3, SPHERE, AIFF, AU.
/// Immutable. Threads: any number at once.
class SoundFile {
 public:
  /// Errors: invalid_argument, naming file and reason.
  static Result<SoundFile> open(const std::filesystem::path& path);
  /// `bytes` outlive the object; `name` is what messages call them. Errors: as open().
  static Result<SoundFile> in_memory(std::span<const std::byte> bytes, std::string name);

  /// Samples of a channel, or somewhat more: what memory they will take follows from it.
  std::uint64_t expected_samples(const SoundPart& part = {}) const;

  /// Decodes it, or a part of it, to the end, block by block, in bounded memory. A part has the
  /// samples that the whole has there: to rounding of mp3, and within 1e-3 of opus, whose decoder
  /// remembers.
  /// Errors: invalid_argument, naming file and reason: it decodes to another length than its
  /// container has, is damaged, ends more than SoundPart::kOvershoot before the part does, has
  /// several channels, or not the one of the part, holds samples that are no numbers, or is longer
  /// than `most`. What was
  /// handed to `take` before the error, `most` and a sample more, means nothing.
  Result<AudioExtent> decode(ChannelChoice channels, const TakeSamples& take,
                             const SoundPart& part = {}, const MostSound& most = {}) const;

 private:
  SoundFile(std::string name, std::shared_ptr<const SoundContainer> container)
      : name_(std::move(name)), container_(std::move(container)) {}

  std::string name_;
  std::shared_ptr<const SoundContainer> container_;
};

/// What a file's header tells of its samples.
struct AudioHeader {
  std::uint32_t sample_rate = 0;  ///< Hz
  std::uint32_t channels = 1;
  bool wide = false;
};

/// Threads: any. Errors: as SoundFile::open(), for what the header shows.
Result<AudioHeader> read_audio_header(const std::filesystem::path& path);

/// SoundFile::open() and decode(). Threads: any.
Result<AudioExtent> decode_audio(const std::filesystem::path& path, ChannelChoice channels,
                                 const TakeSamples& take, const SoundPart& part = {},
                                 const MostSound& most = {});

/// Memory that decoding takes beside the file and the samples that were handed over: buffers and
/// the tables of the libraries, for files of up to 8 channels.
inline constexpr std::uint64_t kDecoderBytes = std::uint64_t{4} << 20;

/// Decodes a file that lies in memory, as it was taken into a dataset. `only` takes the first
/// channel: how many there are was checked then. At most `most` samples and one more are decoded
/// and handed over: where there are more, the extent has `most` + 1, and what the rest is like
/// stays unknown. How many there should be is the caller's to compare. Threads: any.
/// Errors: corrupt_record: what SoundFile refuses, samples that are no numbers, and `each`, which
/// files as they came are not taken with.
Result<AudioExtent> decode_bytes(std::span<const std::byte> file, ChannelChoice channels,
                                 const TakeSamples& take, std::uint64_t most);

/// All samples of the file, or of the part, up to kMostInMemory. Threads: any. Errors: as
/// decode_audio().
Result<Audio> read_audio(const std::filesystem::path& path, ChannelChoice channels,
                         const SoundPart& part = {});
Result<Audio> read_audio(const SoundFile& file, ChannelChoice channels, const SoundPart& part,
                         const MostSound& most);

}  // namespace batchwright
