#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "storage/features/sound/sound.h"
#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr int kRate = 16000;
constexpr std::size_t kSeconds = 7;

/// Sound of which no part is like another.
std::vector<float> changing_sound() {
  std::mt19937 random(7);
  std::vector<float> sound(kSeconds * kRate);
  double phase = 0;
  for (std::size_t i = 0; i < sound.size(); ++i) {
    phase += 0.02 + 0.3 * static_cast<double>(i) / static_cast<double>(sound.size());
    const double noise = static_cast<double>(random() % 2000) / 1e5;
    sound[i] = static_cast<float>(0.4 * std::sin(phase) + noise);
  }
  return sound;
}

struct Format {
  const char* name;
  int code;
  double within;  // of the whole's samples
};
constexpr Format kFormats[] = {
    {"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 0},
    {"f.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 0},
    {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 0},
    {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 0},
    {"a.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 1e-6},
    {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 1e-3},
};

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

std::string part_refusal(const std::filesystem::path& path, const SoundPart& part) {
  const auto audio = read_audio(path, ChannelChoice::only, part);
  REQUIRE_FALSE(audio);
  CHECK(audio.error().code == ErrorCode::invalid_argument);
  return audio.error().message;
}

}  // namespace

TEST_CASE("storage: a part of a sound has the samples of the whole there, of any format") {
  const TemporaryFolder folder;
  const auto sound = changing_sound();
  // On both sides of the second from which decoders begin again, within blocks and at their ends.
  const SoundPart parts[] = {{0, 0.5},      {0.3, 0.30005}, {0.99, 1.01}, {1.0001, 2},
                             {2.048, 2.56}, {3.33333, 6.1}, {6.9, 7},     {5, SoundPart().end}};
  for (const Format& format : kFormats) {
    CAPTURE(format.name);
    encode(folder / format.name, format.code, sound, kRate);
    const auto whole = read_audio(folder / format.name, ChannelChoice::only);
    REQUIRE(whole);
    for (const SoundPart& part : parts) {
      CAPTURE(part.begin);
      const auto first = static_cast<std::size_t>(std::lround(part.begin * kRate));
      const std::size_t end = std::isinf(part.end)
                                  ? whole->samples.size()
                                  : static_cast<std::size_t>(std::lround(part.end * kRate));
      const auto read = read_audio(folder / format.name, ChannelChoice::only, part);
      REQUIRE_MESSAGE(read, read.error().message);
      REQUIRE(read->samples.size() == end - first);
      const auto wanted = std::span(whole->samples).subspan(first, end - first);
      CHECK(largest_difference(read->samples, wanted) <= format.within);
      const auto file = SoundFile::open(folder / format.name);
      REQUIRE(file);
      // Of MP3 the delay of its codec is among them.
      CHECK(file->expected_samples(part) <= end - first + 2000);
      CHECK(file->expected_samples(part) + 1 >= end - first);
    }
  }
}

TEST_CASE("storage: a part may end half a second after the sound, and not more") {
  const TemporaryFolder folder;
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, changing_sound(), kRate);
  const auto cut = read_audio(folder / "a.flac", ChannelChoice::only, SoundPart{6.5, 7.5});
  REQUIRE(cut);
  CHECK(cut->samples.size() == kRate / 2);
  CHECK(
      contains(part_refusal(folder / "a.flac", {6.5, 7.501}),
               "segment from 6.5 to 7.501 s: it ends 0.501 s after the sound's end; allowed: up to "
               "0.5"));
  CHECK(contains(part_refusal(folder / "a.flac", {7, 7.2}), "it begins after the end, at 7.000 s"));
  CHECK(
      contains(part_refusal(folder / "a.flac", {1e300, SoundPart().end}), "begins after the end"));
  CHECK(contains(part_refusal(folder / "a.flac", {1.00001, 1.00002}), "no sample lies in it"));
}

TEST_CASE("storage: sound that is too long is refused, whether or not its header says so") {
  const TemporaryFolder folder;
  encode(folder / "a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, changing_sound(), kRate);
  encode(folder / "a.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, changing_sound(), kRate);
  for (const char* name : {"a.flac", "a.mp3"}) {
    std::uint64_t taken = 0;
    const auto count = [&taken](std::span<const float> samples) { taken += samples.size(); };
    const auto whole = decode_audio(folder / name, ChannelChoice::only, count, {}, {50'000});
    REQUIRE_FALSE(whole);
    CHECK(contains(whole.error().message, "longer than the 50000 samples"));
    CHECK(taken <= 50'001);
    taken = 0;
    const SoundPart part{1, 6};
    CHECK_FALSE(decode_audio(folder / name, ChannelChoice::only, count, part, {50'000}));
    CHECK(taken == 50'001);
    CHECK(decode_audio(folder / name, ChannelChoice::only, count, part, {80'000}));
  }
  // Seventeen hours, with as many bytes after the header, of which the disk has none.
  std::string header = wav(tone(8), {kRate, 1}).substr(0, 44);
  constexpr std::uint32_t kBytes = 2'000'000'000;
  for (const auto& [at, bytes] : {std::pair(4, kBytes + 36), std::pair(40, kBytes)}) {
    std::memcpy(header.data() + at, &bytes, sizeof bytes);
  }
  write_file(folder / "long.wav", header);
  std::filesystem::resize_file(folder / "long.wav", 44 + std::uint64_t{kBytes});
  CHECK(contains(part_refusal(folder / "long.wav", {}), "longer than the 536870912 samples"));
  CHECK(read_audio(folder / "long.wav", ChannelChoice::only, SoundPart{60'000, 60'001}));
}

TEST_CASE("storage: what is wrong with a part only is an error of that part only") {
  const TemporaryFolder folder;
  auto sound = changing_sound();
  sound[5 * kRate] = std::nanf("");
  encode(folder / "f.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, sound, kRate);
  CHECK(read_audio(folder / "f.wav", ChannelChoice::only, SoundPart{3, 4.9}));
  CHECK(contains(part_refusal(folder / "f.wav", {4.5, 6}), "sample 8000 is nan"));
}
