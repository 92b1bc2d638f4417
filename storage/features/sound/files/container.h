#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/features/sound/files/sound_bytes.h"

// Containers of sound, looked at before anything is decoded. What a header says of sizes and
// lengths is compared with what lies in the file; what contradicts it is refused. A file is what
// its bytes are, whatever its name says.

namespace batchwright {

/// A container that was looked at to its end, and the sound in it.
struct SoundContainer {
  /// What a decoder is to read: the sound alone, without what lies around it, and with sizes that
  /// are those of what is there.
  SoundBytes bytes;
  bool is_mp3 = false;
  /// Samples of a channel that the container has; nothing where decoding alone tells.
  std::optional<std::uint64_t> samples = {};
  std::uint32_t clock = 0;  ///< Of what rate these samples are; 0: that of the sound.
  /// A decoder may give up to this many more, which fill the last block and are no sound.
  std::uint64_t filling = 0;
  /// Of MP3: the frames, without one that describes the others; how many of them are nothing but
  /// the codec's delay and filling, which decoders leave out; and where every kIndexStep'th begins.
  std::uint64_t frames = 0;
  std::uint64_t left_out = 0;
  std::vector<std::uint64_t> frame_index = {};
  /// Samples at the begin of an MP3 that was cut out of a longer one, which need bytes of frames
  /// before them.
  std::uint64_t lacking_samples = 0;
  static constexpr std::uint64_t kIndexStep = 64;
};

/// Looks at a file of WAVE (RIFF, RIFX, RF64, W64), FLAC, Ogg (Vorbis, Opus, FLAC), MP3, SPHERE,
/// AIFF or AU, to its end, in bounded memory. Threads: any.
/// Errors: invalid_argument, without the file's name: not one of these (names it where it is
/// known), damaged, cut, or with a size or length that is not that of what is there.
Result<SoundContainer> look_at_sound(const SoundBytes& file);

/// The same as far as the header goes: its sizes and lengths are not compared with anything, and
/// of the result only `bytes` and `is_mp3` are set.
Result<SoundContainer> look_at_header(const SoundBytes& file);

/// An error of a container.
Error bad_container(std::string why);

/// Bytes that follow the sound and are none: at most a few of them, and zeros.
bool is_padding(const SoundBytes& file, std::uint64_t at, std::uint64_t most);

/// What files of each kind begin with is known to have been seen.
Result<SoundContainer> look_at_riff(const SoundBytes& file);
Result<SoundContainer> look_at_w64(const SoundBytes& file);
Result<SoundContainer> look_at_aiff(const SoundBytes& file);
Result<SoundContainer> look_at_au(const SoundBytes& file);
Result<SoundContainer> look_at_sphere(const SoundBytes& file);
Result<SoundContainer> look_at_flac(const SoundBytes& file);
Result<SoundContainer> look_at_ogg(const SoundBytes& file);
/// `first`: the place of the first frame.
Result<SoundContainer> look_at_mp3(const SoundBytes& file, std::uint64_t first);

/// Bytes of a tag of ID3v2 that stands at a place; 0 where none does.
std::uint64_t id3_bytes(const SoundBytes& file, std::uint64_t at);

/// Where the first of several frames of MPEG audio in a row begins; nothing where there are none
/// near the begin of the file.
std::optional<std::uint64_t> find_mp3(const SoundBytes& file);

}  // namespace batchwright
