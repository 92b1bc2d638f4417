// Short files of each kind of sound that datasets hold, and sets of noise and rooms made of them.

#include <sndfile.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "tests/fuzz/seeds/seeds.h"
#include "tests/support/temporary_folder.h"

namespace batchwright::fuzz {
namespace {

constexpr std::uint32_t kSeedRate = 8000;  // Hz; Opus takes it, too.

/// A tone that dies away, as a room's response does, in each of the channels.
std::vector<float> tone(std::size_t frames, int channels) {
  std::vector<float> samples;
  for (std::size_t n = 0; n < frames; ++n) {
    const double place = static_cast<double>(n);
    const double sample = 0.5 * std::cos(0.3 * place) * std::exp(-place / 100);
    samples.insert(samples.end(), static_cast<std::size_t>(channels), static_cast<float>(sample));
  }
  return samples;
}

/// The bytes of a file of libsndfile's format.
std::string encoded(int format, std::size_t frames, int channels = 1) {
  const test::TemporaryFolder folder;
  const auto path = folder / "sound";
  SF_INFO info{};
  info.samplerate = kSeedRate;
  info.channels = channels;
  info.format = format;
  SNDFILE* const sound = sf_open(path.c_str(), SFM_WRITE, &info);
  require(sound != nullptr, "libsndfile writes the format");
  const auto samples = tone(frames, channels);
  const auto count = static_cast<sf_count_t>(frames);
  require(sf_writef_float(sound, samples.data(), count) == count, "and the samples");
  sf_close(sound);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> files() {
  constexpr int kVorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
  constexpr int kOpus = SF_FORMAT_OGG | SF_FORMAT_OPUS;
  return {encoded(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 200),
          encoded(SF_FORMAT_WAV | SF_FORMAT_PCM_24, 100, 2),
          encoded(SF_FORMAT_WAV | SF_FORMAT_FLOAT, 100),
          encoded(SF_FORMAT_WAV | SF_FORMAT_ULAW, 200),
          encoded(SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 600),
          encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 500),
          encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 300, 2),
          encoded(kVorbis, 500),
          encoded(kVorbis, 300, 2),
          encoded(kOpus, 500),
          encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 2000)};
}

/// A sequence as sound_sets.cpp reads it, of the rate and length that it has.
std::string sequence(std::uint32_t rate, const std::string& bytes) {
  return number_bytes(rate) + std::string(3, '\0') +
         number_bytes(static_cast<std::uint16_t>(bytes.size())) + bytes;
}

template <class Sample>
std::string stored(double scale) {
  std::string bytes;
  for (const float sample : tone(200, 1)) {
    bytes += number_bytes(static_cast<Sample>(static_cast<double>(sample) * scale));
  }
  return bytes;
}

}  // namespace

void write_sound_seeds(const std::filesystem::path& folder) {
  Seeds sound(folder, "sound");
  Seeds sets(folder, "sound_sets");
  Seeds pages(folder, "ogg_pages");
  Seeds frames(folder, "mp3_frames");
  // One frame of zeros, some of any content, a byte and a tag between them.
  frames.add(std::string("\3\0", 2));
  std::string some;
  for (int i = 0; i < 12; ++i)
    some += std::string("\5\20", 2) + std::string(16, static_cast<char>(17 * i));
  frames.add(some);
  frames.add(some + "\x20\1x" + some + std::string("\x20\x0b") + "APETAGEXabc" + some);
  const std::string rate = number_bytes(kSeedRate);
  for (const std::string& file : files()) {
    // The first channel, and the mean of all.
    sound.add("\1" + file);
    if (file.starts_with("OggS")) pages.add(file);
    sound.add("\2" + file);
    sets.add("\2" + rate + sequence(0, file));
  }
  const std::string whole = stored<std::int16_t>(32767);
  const std::string real = stored<float>(1);
  sets.add(std::string(1, '\0') + rate + sequence(kSeedRate, whole) +
           sequence(2 * kSeedRate, whole));
  sets.add("\1" + rate + sequence(kSeedRate, real));
  sets.add("\1" + rate + sequence(kSeedRate * 3 / 4, real));
}

}  // namespace batchwright::fuzz
