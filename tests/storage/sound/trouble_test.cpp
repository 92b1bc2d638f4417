// Damage that decoders pass over: libmpg123 and libsndfile go on with silence, or with other sound,
// and would say so on the standard error or in their logs.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "tests/storage/sound/sound_bytes.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What is written to the standard error while it lives, by whatever library.
class StandardError {
 public:
  explicit StandardError(const std::filesystem::path& file) : file_(file), before_(::dup(2)) {
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(::dup2(to, 2) == 2);
    ::close(to);
  }
  ~StandardError() { restore(); }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  std::string text() {
    restore();
    return read_file(file_);
  }

 private:
  void restore() {
    std::fflush(stderr);
    if (before_ < 0) return;
    ::dup2(before_, 2);
    ::close(before_);
    before_ = -1;
  }

  std::filesystem::path file_;
  int before_;
};

constexpr std::size_t kFrames = 12;
constexpr std::size_t kFrameBytes = 144;  // 32 kbit/s at 16 kHz, MPEG 2
constexpr std::size_t kSideAt = 6;        // after head and checksum
constexpr std::uint64_t kFrameSamples = 576;

/// The checksum of such a frame: of the head's last two bytes, and 9 of side information.
std::string with_crc(std::string frame) {
  std::uint32_t crc = 0xFFFF;
  const std::string covered = frame.substr(2, 2) + frame.substr(kSideAt, 9);
  for (const char byte : covered) {
    for (int bit = 7; bit >= 0; --bit) {
      const bool carry = ((crc >> 15 & 1) != 0) != ((byte >> bit & 1) != 0);
      crc = (crc << 1 & 0xFFFF) ^ (carry ? 0x8005 : 0);
    }
  }
  return frame.replace(4, 2, number(crc, 2, true));
}

/// A frame of silence, with a checksum; `side` goes over the begin of its side information.
std::string silent_frame(const std::string& side = {}) {
  std::string frame = "\xff\xf2\x48\xc0" + std::string(kFrameBytes - 4, '\0');
  return with_crc(frame.replace(kSideAt, side.size(), side));
}

/// Silence, with one frame at a place.
std::string silence_with(const std::string& frame, std::size_t at) {
  std::string file;
  for (std::size_t i = 0; i < kFrames; ++i) file += i == at ? frame : silent_frame();
  return file;
}

std::string side(std::uint32_t back, std::uint32_t bits, std::uint32_t pairs,
                 std::uint32_t window = 0) {
  // 8 bits, 1 private, then of the granule 12, 9, 8 of gain, 9 of scale factors, 3 of windows.
  const std::uint64_t all = std::uint64_t{back} << 42 | std::uint64_t{bits} << 29 |
                            std::uint64_t{pairs} << 20 | std::uint64_t{window};
  return number(all << 6, 7, true);
}

/// Of a file of coded blocks of so many bytes, with a byte changed in the fifth.
std::string with_block(const std::string& file, std::size_t block, std::size_t byte) {
  std::string damaged = file;
  damaged[file.find("data") + 8 + 5 * block + byte] = '\xff';
  return damaged;
}

}  // namespace

TEST_CASE("sound: a frame of MP3 that contradicts itself is refused, wherever it stands") {
  CHECK(samples_of(silence_with(silent_frame(), 0)) == kFrames * kFrameSamples);
  // Reaches as far back as there are bytes, and needs what is there and in its own 129.
  CHECK(samples_of(silence_with(silent_frame(side(129, 8 * 129, 0)), 1)) > 0);
  for (const std::size_t at : {std::size_t{0}, std::size_t{6}, kFrames - 1}) {
    CAPTURE(at);
    const auto refusal = [at](const std::string& frame) {
      const std::string why = refusal_of(silence_with(frame, at));
      CHECK(contains(why, "the " + std::to_string(at + 1) + "th frame, at byte " +
                              std::to_string(at * kFrameBytes) + ", cannot be decoded"));
      return why;
    };
    std::string damaged = silent_frame();
    damaged[kSideAt + 3] = '\x01';
    CHECK(contains(refusal(damaged), "its checksum differs"));
    damaged = silent_frame();
    damaged[4] ^= 1;
    CHECK(contains(refusal(damaged), "its checksum differs"));
    CHECK(contains(refusal(silent_frame(side(0, 8 * 129 + 1, 0))), "1032 bits of sound of 1033"));
    CHECK(contains(refusal(silent_frame(side(0, 0, 289))), "289 pairs of values"));
    CHECK(contains(refusal(silent_frame(side(0, 0, 0, 4))), "a window that there is not"));
  }
}

TEST_CASE("sound: MP3 that was cut out of a longer one is taken, and says what it lacks") {
  const auto extent = [](const std::string& bytes) {
    const auto found = decode_bytes(
        std::as_bytes(std::span(bytes)), ChannelChoice::only, [](auto) {}, kMostSequence);
    REQUIRE_MESSAGE(found, found.error().message);
    return *found;
  };
  const auto reaching = [](std::uint32_t back, std::size_t at) {
    return silence_with(silent_frame(side(back, 0, 0)), at);
  };
  CHECK_FALSE(extent(reaching(0, 0)).lacks_begin);
  CHECK_FALSE(extent(reaching(129, 1)).lacks_begin);
  for (const auto& [back, at] : {std::pair(1U, 0U), std::pair(130U, 1U), std::pair(255U, 1U)}) {
    const AudioExtent found = extent(reaching(back, at));
    CHECK(found.lacks_begin);
    CHECK(found.samples == kFrames * kFrameSamples);
  }
  // As LAME makes it, from a frame in the middle on.
  const std::string whole =
      encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, floats(tone(50'000)));
  const TemporaryFolder folder;
  write_file(folder / "cut.mp3", reaching(200, 0));
  const auto first = read_audio(folder / "cut.mp3", ChannelChoice::only, SoundPart{0.0, 0.1});
  const auto later = read_audio(folder / "cut.mp3", ChannelChoice::only, SoundPart{0.1, 0.3});
  REQUIRE((first && later));
  CHECK(first->lacks_begin);
  CHECK_FALSE(later->lacks_begin);
  CHECK_FALSE(extent(whole).lacks_begin);
}

TEST_CASE("sound: a block of ADPCM that is none is an error, though libsndfile decodes on") {
  const auto sound = floats(tone(20'000));
  constexpr std::size_t kBlock = 512;  // at 16 kHz, as libsndfile writes them
  const std::string ima = encoded(SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, sound);
  const std::string ms = encoded(SF_FORMAT_WAV | SF_FORMAT_MS_ADPCM, sound);
  CHECK(samples_of(ima) > 0);
  CHECK(samples_of(ms) > 0);
  CHECK(contains(refusal_of(with_block(ima, kBlock, 3)), "IMA ADPCM synchronisation error"));
  CHECK(contains(refusal_of(with_block(ms, kBlock, 0)), "MS ADPCM synchronisation error"));
}

TEST_CASE("sound: whatever is damaged, no library writes to the standard error") {
  const auto sound = floats(tone(12'000));
  std::vector<std::string> files;
  for (const int format :
       {SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
        SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_OGG | SF_FORMAT_OPUS,
        SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, SF_FORMAT_WAV | SF_FORMAT_MS_ADPCM,
        SF_FORMAT_WAV | SF_FORMAT_GSM610, SF_FORMAT_AIFF | SF_FORMAT_PCM_24}) {
    files.push_back(encoded(format, sound));
  }
  const TemporaryFolder folder;
  std::mt19937 random(5);
  std::size_t refused = 0;
  StandardError written(folder / "stderr");
  for (const std::string& file : files) {
    for (int i = 0; i < 40; ++i) {
      std::string damaged = file;
      const std::size_t at = random() % (file.size() - 8);
      for (std::size_t k = 0; k < 1 + 7 * (random() % 2); ++k) {
        damaged[at + k] = static_cast<char>(random());
      }
      if (i % 4 == 0) damaged.erase(at, 1 + random() % 3000);
      refused += outcome_of(damaged).samples == 0 ? 1U : 0U;
    }
  }
  CHECK(written.text() == "");
  CHECK(refused > 100);
}
