#include "tests/storage/sound/sound_bytes.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kFlacSamples = 50'000;

const std::string& flac_file() {
  static const std::string file =
      encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, floats(tone(kFlacSamples)));
  return file;
}

/// The number of samples: the last four bits of byte 21 and the four bytes after it.
std::string flac_claiming(std::uint64_t samples) {
  std::string file = flac_file();
  file[21] = static_cast<char>((file[21] & 0xF0) | static_cast<char>(samples >> 32));
  return file.replace(22, 4, number(samples, 4, true));
}

}  // namespace

TEST_CASE("sound: FLAC whose header says other samples than its frames have is refused") {
  CHECK(samples_of(flac_claiming(kFlacSamples)) == kFlacSamples);
  CHECK(samples_of(flac_claiming(0)) == kFlacSamples);  // its writer could not know
  for (const std::uint64_t wrong : {1U, 4096U, 30'000U, 49'152U, 49'999U, 50'001U, 60'000U}) {
    CHECK(contains(
        refusal_of(flac_claiming(wrong)),
        "its header promises " + std::to_string(wrong) + " samples, its frames have 50000"));
  }
}

TEST_CASE("sound: FLAC is refused wherever it is cut, whether or not it says how long it is") {
  check_cuts(flac_file(), 997);
  check_cuts(flac_claiming(0), 997);
}

TEST_CASE("sound: FLAC that lost bytes within is refused") {
  std::string file = flac_file();
  CHECK(refusal_of(file.erase(file.size() / 2, 3000)) != "");
}

TEST_CASE("sound: tags stand before and after FLAC") {
  const std::string id3v2 = std::string("ID3\4\0\0\0\0\0\x20", 10) + std::string(32, '\0');
  CHECK(samples_of(id3v2 + flac_file() + "TAG" + std::string(125, ' ')) == kFlacSamples);
  CHECK(refusal_of(flac_file() + "abc") != "");
}

TEST_CASE("sound: a part of FLAC near its end has its samples, whatever its header leaves open") {
  const TemporaryFolder folder;
  const auto whole = floats(tone(kFlacSamples));
  for (const std::uint64_t claim : {std::uint64_t{0}, std::uint64_t{kFlacSamples}}) {
    write_file(folder / "x", flac_claiming(claim));
    const auto part = read_audio(folder / "x", ChannelChoice::only, SoundPart{2.5, 3.1});
    REQUIRE_MESSAGE(part, part.error().message);
    CHECK(part->samples == std::vector<float>(whole.begin() + 40'000, whole.begin() + 49'600));
  }
}
