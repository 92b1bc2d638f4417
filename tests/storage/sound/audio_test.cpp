#include "storage/features/sound/audio.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

// libsndfile 1.2.0 does not free libvorbis's state when an Ogg file ends within its headers.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init\n"; }

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The reason why a file of these bytes is refused.
std::string refusal(const std::string& bytes, ChannelChoice channels = ChannelChoice::only) {
  const TemporaryFolder folder;
  const auto path = folder / "sound.wav";
  write_file(path, bytes);
  const auto audio = read_audio(path, channels);
  REQUIRE_FALSE(audio);
  CHECK(audio.error().code == ErrorCode::invalid_argument);
  REQUIRE(audio.error().message.find(path.string() + ": ") == 0);
  return audio.error().message.substr(path.string().size() + 2);
}

Result<Audio> read_bytes(const std::string& bytes, ChannelChoice channels) {
  const TemporaryFolder folder;
  write_file(folder / "sound.wav", bytes);
  return read_audio(folder / "sound.wav", channels);
}

}  // namespace

TEST_CASE("storage: samples come back as they are, from -1 to 1") {
  const std::vector<std::int16_t> samples = {0, 16384, -32768, 32767};
  const auto audio = read_bytes(wav(samples, {11025, 1}), ChannelChoice::only);
  REQUIRE(audio);
  CHECK(audio->sample_rate == 11025);
  CHECK(audio->samples == floats(samples));
}

TEST_CASE("storage: of several channels the first or the mean is taken, or the file refused") {
  const std::string stereo = wav({100, 300, -200, 0}, {8000, 2});
  CHECK(refusal(stereo) == "2 channels; allowed: --channel first, mix or each");
  CHECK(read_bytes(stereo, ChannelChoice::first)->samples == floats({100, -200}));
  CHECK(read_bytes(stereo, ChannelChoice::mix)->samples == floats({200, -100}));
}

TEST_CASE("storage: flac gives the samples that went in, ogg about as many") {
  const TemporaryFolder folder;
  const auto samples = floats(tone(4000));
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, samples);
  encode(folder / "a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, samples);
  const auto flac = read_audio(folder / "a.flac", ChannelChoice::only);
  REQUIRE(flac);
  CHECK(flac->samples == samples);
  const auto ogg = read_audio(folder / "a.ogg", ChannelChoice::only);
  REQUIRE_MESSAGE(ogg, ogg.error().message);
  CHECK(ogg->samples.size() == 4000);
}

TEST_CASE("storage: truncated flac and ogg are refused at any length") {
  const TemporaryFolder folder;
  const auto samples = floats(tone(20000));
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, samples);
  encode(folder / "a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, samples);
  for (const char* name : {"a.flac", "a.ogg"}) {
    const std::string whole = read_file(folder / name);
    for (std::size_t size = 0; size < whole.size(); size += 97) {
      CAPTURE(name);
      CAPTURE(size);
      write_file(folder / "cut", whole.substr(0, size));
      CHECK_FALSE(read_audio(folder / "cut", ChannelChoice::only));
    }
  }
}

TEST_CASE("storage: a wav file that ends before its header says is refused") {
  const std::string whole = wav(tone(1000));
  CHECK(refusal(whole.substr(0, 1044)) ==
        "truncated: its header promises 2000 bytes of samples, the file has 1000");
  for (std::size_t size = 1; size < whole.size(); size += 31) refusal(whole.substr(0, size));
}

TEST_CASE("storage: a wav file whose writer could not know its length is taken") {
  std::string streamed = wav(tone(1000));
  streamed.replace(4, 4, "\xff\xff\xff\xff");
  streamed.replace(40, 4, "\xff\xff\xff\xff");
  const auto audio = read_bytes(streamed, ChannelChoice::only);
  REQUIRE(audio);
  CHECK(audio->samples.size() == 1000);
}

TEST_CASE("storage: flac whose writer could not know its length is taken, and found out when cut") {
  const TemporaryFolder folder;
  const auto samples = floats(tone(20000));
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, samples);
  std::string streamed = read_file(folder / "a.flac");
  // The number of samples: the last four bits of byte 21 and the four bytes after it.
  streamed[21] = static_cast<char>(streamed[21] & 0xF0);
  streamed.replace(22, 4, std::string(4, '\0'));
  write_file(folder / "a.flac", streamed);
  const auto audio = read_audio(folder / "a.flac", ChannelChoice::only);
  REQUIRE_MESSAGE(audio, audio.error().message);
  CHECK(audio->samples == samples);
  for (std::size_t size = 100; size < streamed.size(); size += 97) {
    CAPTURE(size);
    write_file(folder / "cut.flac", streamed.substr(0, size));
    CHECK_FALSE(read_audio(folder / "cut.flac", ChannelChoice::only));
  }
}

TEST_CASE("storage: a cut wav file is refused however many chunks stand before its samples") {
  const std::string whole = wav(tone(1000));
  std::string chunks;
  for (int i = 0; i < 300; ++i) chunks += std::string("note\x01\0\0\0x\0", 10);
  const std::string many = whole.substr(0, 36) + chunks + whole.substr(36);
  const auto audio = read_bytes(many, ChannelChoice::only);
  REQUIRE_MESSAGE(audio, audio.error().message);
  CHECK(audio->samples.size() == 1000);
  CHECK(refusal(many.substr(0, many.size() - 1000)) ==
        "truncated: its header promises 2000 bytes of samples, the file has 1000");
}

TEST_CASE("storage: what is no sound is refused with the reason") {
  CHECK(refusal("") == "the file is empty");
  CHECK(refusal(wav({})) == "no samples: the file has a header only");
  CHECK(refusal("key\ttext\n").find("not readable audio: ") == 0);
  CHECK_FALSE(read_audio("/nowhere.wav", ChannelChoice::only));
}

TEST_CASE("storage: a file in memory that has a header only is a corrupt record") {
  const std::string bytes = wav({});
  const auto extent = decode_bytes(
      std::as_bytes(std::span(bytes)), ChannelChoice::only, [](auto) {}, 10);
  REQUIRE_FALSE(extent);
  CHECK(extent.error().code == ErrorCode::corrupt_record);
  CHECK(extent.error().message ==
        "encoded sound: no samples: the file has a header only; ingest it again");
}

TEST_CASE("storage: decoding ends with the sample after the last one that is wanted") {
  const TemporaryFolder folder;
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, floats(tone(20000)));
  const std::string bytes = read_file(folder / "a.flac");
  const auto decoded = [&bytes](std::uint64_t most) {
    std::uint64_t taken = 0;
    const auto extent = decode_bytes(
        std::as_bytes(std::span(bytes)), ChannelChoice::only,
        [&taken](std::span<const float> samples) { taken += samples.size(); }, most);
    REQUIRE_MESSAGE(extent, extent.error().message);
    CHECK(extent->samples == taken);
    return taken;
  };
  CHECK(decoded(20001) == 20000);
  CHECK(decoded(20000) == 20000);
  CHECK(decoded(19999) == 20000);
  CHECK(decoded(3000) == 3001);
  CHECK(decoded(0) == 1);
}

TEST_CASE("storage: samples that are no numbers are refused") {
  const TemporaryFolder folder;
  std::vector<float> samples(100, 0.5F);
  samples[42] = std::numeric_limits<float>::quiet_NaN();
  encode(folder / "a.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, samples);
  const auto audio = read_audio(folder / "a.wav", ChannelChoice::only);
  REQUIRE_FALSE(audio);
  CHECK(audio.error().message.find("sample 42 is nan, not a number") != std::string::npos);
}
