#include <filesystem>
#include <fstream>

#include "tests/storage/sound/sound_bytes.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kSamples = 4000;
constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

/// A file of numbers, and where its header has how many there are.
struct PlainFile {
  std::string name;
  std::string bytes;
  std::size_t place = 0;  ///< Of the claim,
  std::size_t width = 4;  ///< which has so many bytes,
  bool is_big_endian = false;
  std::uint64_t extra = 0;  ///< and counts so many more than those of the samples.
  std::size_t sample_bytes = 2;

  std::uint64_t said(std::uint64_t samples) const { return samples * sample_bytes + extra; }
  std::string claiming(std::uint64_t value) const {
    std::string made = bytes;
    return made.replace(place, width, number(value, width, is_big_endian));
  }
};

std::string big_samples() {
  std::string bytes;
  for (const std::int16_t sample : tone(kSamples)) {
    bytes += number(static_cast<std::uint16_t>(sample), 2, true);
  }
  return bytes;
}

std::string little_samples() {
  std::string bytes;
  for (const std::int16_t sample : tone(kSamples)) {
    bytes += number(static_cast<std::uint16_t>(sample), 2);
  }
  return bytes;
}

/// PCM of 16 bits, 16 kHz, one channel.
std::string fmt_chunk(bool is_big_endian = false) {
  const auto put = [is_big_endian](std::uint64_t value, std::size_t bytes) {
    return number(value, bytes, is_big_endian);
  };
  return "fmt " + put(16, 4) + put(1, 2) + put(1, 2) + put(16000, 4) + put(32000, 4) + put(2, 2) +
         put(16, 2);
}

PlainFile rf64() {
  const std::string data = little_samples();
  const std::string ds64 = "ds64" + number(28, 4) + number(data.size() + 72, 8) +
                           number(data.size(), 8) + number(kSamples, 8) + number(0, 4);
  return {"RF64",
          "RF64" + number(0xffffffff, 4) + "WAVE" + ds64 + fmt_chunk() + "data" +
              number(0xffffffff, 4) + data,
          28, 8};
}

PlainFile rifx() {
  const std::string data = big_samples();
  return {"RIFX",
          "RIFX" + number(data.size() + 36, 4, true) + "WAVE" + fmt_chunk(true) + "data" +
              number(data.size(), 4, true) + data,
          40, 4, true};
}

PlainFile w64() {
  const std::string tail("\xF3\xAC\xD3\x11\x8C\xD1\x00\xC0\x4F\x8E\xDB\x8A", 12);
  const std::string riff("riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\x00\x00", 16);
  const std::string data = little_samples();
  return {"W64",
          riff + number(data.size() + 104, 8) + "wave" + tail + "fmt " + tail + number(40, 8) +
              fmt_chunk().substr(8) + "data" + tail + number(data.size() + 24, 8) + data,
          96,
          8,
          false,
          24};
}

PlainFile sphere(const std::string& coding, std::size_t sample_bytes, std::string data) {
  const std::string fields =
      "NIST_1A\n   1024\nchannel_count -i 1\nsample_count -i 00004000\n"
      "sample_rate -i 16000\nsample_n_bytes -i " +
      std::to_string(sample_bytes) +
      (sample_bytes == 1 ? "\nsample_byte_format -s1 1" : "\nsample_byte_format -s2 01") +
      "\nsample_coding -s" + std::to_string(coding.size()) + " " + coding + "\nend_head\n";
  return {"SPHERE " + coding,
          fields + std::string(1024 - fields.size(), ' ') + data,
          fields.find("00004000"),
          8,
          false,
          0,
          sample_bytes};
}

PlainFile aiff() {
  const std::string data = big_samples();
  const std::string rate("\x40\x0C\xFA\0\0\0\0\0\0\0", 10);
  return {"AIFF",
          "FORM" + number(data.size() + 46, 4, true) + "AIFFCOMM" + number(18, 4, true) +
              number(1, 2, true) + number(kSamples, 4, true) + number(16, 2, true) + rate + "SSND" +
              number(data.size() + 8, 4, true) + number(0, 8) + data,
          42,
          4,
          true,
          8};
}

PlainFile au() {
  const std::string data = big_samples();
  return {"AU",
          ".snd" + number(24, 4, true) + number(data.size(), 4, true) + number(3, 4, true) +
              number(16000, 4, true) + number(1, 4, true) + data,
          8, 4, true};
}

std::vector<PlainFile> binary_files() {
  return {{"RIFF", wav(tone(kSamples), {16000, 1}), 40}, rifx(), rf64(), w64(), aiff(), au()};
}

std::vector<PlainFile> all_files() {
  auto files = binary_files();
  files.push_back(sphere("pcm", 2, little_samples()));
  files.push_back(sphere("ulaw", 1, little_samples().substr(0, kSamples)));
  files.push_back(sphere("alaw", 1, little_samples().substr(0, kSamples)));
  return files;
}

/// Whether libsndfile writes the format.
bool is_written(int format) {
  const TemporaryFolder folder;
  SF_INFO info{0, 8000, 1, format, 0, 0};
  SNDFILE* const sound = sf_open((folder / "x").c_str(), SFM_WRITE, &info);
  return sound != nullptr && sf_close(sound) == 0;
}

/// The same with another number of samples in SPHERE's text.
std::string sphere_claiming(const PlainFile& file, std::uint64_t samples) {
  std::string made = file.bytes;
  const std::string digits = std::to_string(samples);
  return made.replace(file.place, 8, std::string(8 - digits.size(), '0') + digits);
}

std::string claiming(const PlainFile& file, std::uint64_t samples) {
  return file.name.starts_with("SPHERE") ? sphere_claiming(file, samples)
                                         : file.claiming(file.said(samples));
}

}  // namespace

TEST_CASE("sound: every container of plain samples has all of them, and none where it is cut") {
  for (const PlainFile& file : all_files()) {
    CAPTURE(file.name);
    CHECK(samples_of(file.bytes) == kSamples);
    check_cuts(file.bytes, 509);
  }
}

TEST_CASE("sound: a container that is cut is refused with both numbers") {
  for (const PlainFile& file : all_files()) {
    CAPTURE(file.name);
    const std::size_t bytes = kSamples * file.sample_bytes;
    CHECK(refusal_of(file.bytes.substr(0, file.bytes.size() - 1000)) ==
          "truncated: its header promises " + std::to_string(bytes) +
              " bytes of samples, the file has " + std::to_string(bytes - 1000));
  }
}

TEST_CASE("sound: a header that says fewer or more samples than there are is refused") {
  for (const PlainFile& file : all_files()) {
    CAPTURE(file.name);
    for (const std::uint64_t samples : {1U, 100U, 3000U, 3999U, 4001U, 5000U, 100'000U}) {
      CAPTURE(samples);
      const std::string why = refusal_of(claiming(file, samples));
      CHECK(contains(why, std::to_string(samples * file.sample_bytes)));
      CHECK(contains(why, std::to_string(kSamples * file.sample_bytes)));
    }
  }
}

TEST_CASE("sound: AIFF counts samples twice, and both have to be right") {
  std::string file = aiff().bytes;
  for (const std::uint64_t samples : {0U, 3999U, 4001U}) {
    CHECK(contains(
        refusal_of(file.replace(22, 4, number(samples, 4, true))),
        "its header promises " + std::to_string(samples) + " samples, chunk \"SSND\" has 4000"));
  }
}

TEST_CASE("sound: a size that its writer could not know is that of what is there") {
  for (const PlainFile& file : binary_files()) {
    CAPTURE(file.name);
    std::string open = file.bytes;
    if (file.name == "AIFF") open.replace(22, 4, number(0, 4));
    PlainFile unknown = file;
    unknown.bytes = open;
    CHECK(samples_of(unknown.claiming(0)) == kSamples);
    if (file.name == "AIFF") unknown.bytes.replace(22, 4, number(kAllOnes, 4));
    CHECK(samples_of(unknown.claiming(kAllOnes)) == kSamples);
    // A recorder that was killed within a sample.
    CHECK(samples_of(unknown.claiming(kAllOnes) + "\x55") == kSamples);
    // Where the size of the whole is none, too.
    if (!file.name.starts_with("RIF")) continue;
    for (const std::uint64_t whole : {std::uint64_t{0}, kAllOnes}) {
      std::string both = file.claiming(whole);
      CHECK(samples_of(both.replace(4, 4, number(whole, 4))) == kSamples);
    }
  }
  const std::string text = sphere("pcm", 2, little_samples()).bytes;
  std::string without = text;
  CHECK(samples_of(without.replace(text.find("sample_count"), 12, "sample_other")) == kSamples);
}

TEST_CASE("sound: ds64 of ones alone leaves the size open") {
  std::string file = rf64().bytes;
  file.replace(20, 24, std::string(24, '\xff'));
  CHECK(samples_of(file) == kSamples);
}

TEST_CASE("sound: sizes that pipes of sox and ffmpeg get are open, and those between are not") {
  const PlainFile riff = binary_files().front();
  for (const std::uint64_t open : {0x7ffff000U, 0x7fffffffU, 0x80000000U, 0xfffffff0U}) {
    CHECK(samples_of(riff.claiming(open)) == kSamples);
  }
  CHECK(contains(refusal_of(riff.claiming(3'000'000'000)), "promises 3000000000 bytes"));
}

TEST_CASE("sound: a WAVE without samples is refused, whatever follows them") {
  const std::string list = "LIST" + number(16, 4) + "INFOISFT" + number(4, 4) + "abcd";
  CHECK(refusal_of(wav({}) + list) == "no samples: the file has a header only");
  CHECK(refusal_of(wav({}) + list + list) == "no samples: the file has a header only");
  CHECK(samples_of(wav(tone(kSamples)) + list) == kSamples);
}

TEST_CASE("sound: what follows the samples of WAVE are chunks, or a few zeros") {
  const std::string whole = wav(tone(kSamples));
  CHECK(samples_of(whole + std::string(3, '\0')) == kSamples);
  CHECK(samples_of(whole + std::string(2000, '\0')) == kSamples);
  CHECK(contains(refusal_of(whole + "abcde"), "are no chunks"));
  CHECK(contains(refusal_of(whole + std::string(5000, '\0')), "are no chunks"));
  // An odd chunk, with the byte that makes it even and without.
  const std::string odd = "note" + number(3, 4) + "abc";
  const std::string list = "LIST" + number(4, 4) + "INFO";
  CHECK(samples_of(whole + odd + std::string(1, '\0') + list) == kSamples);
  CHECK(samples_of(whole + odd + list) == kSamples);
  CHECK(contains(refusal_of(whole + list.substr(0, 11)), "are no chunks"));
  CHECK(contains(refusal_of(whole + "data" + number(4, 4) + "abcd"), "are no chunks"));
}

TEST_CASE("sound: bytes after the last sample of all channels are no sample") {
  std::string file = wav({1, 2, 3, 4, 5, 6}, {8000, 2}) + "abc";
  file.replace(40, 4, number(15, 4));
  CHECK(samples_of(file) == 3);
}

TEST_CASE("sound: a size that wrapped at 4 GiB is refused with both numbers") {
  const TemporaryFolder folder;
  constexpr std::uint64_t kTotal = (std::uint64_t{1} << 32) + 960'000;
  std::string header = wav(tone(8)).substr(0, 44);
  header.replace(4, 4, number(kTotal + 36, 4)).replace(40, 4, number(kTotal, 4));
  write_file(folder / "wrap.wav", header);
  std::filesystem::resize_file(folder / "wrap.wav", 44 + kTotal);  // the disk has none of it
  const auto file = SoundFile::open(folder / "wrap.wav");
  REQUIRE_FALSE(file);
  CHECK(
      contains(file.error().message, "promises 960000 bytes of samples, the file has 4295927296"));
}

TEST_CASE("sound: fact says where coded samples end") {
  for (const int coding : {SF_FORMAT_IMA_ADPCM, SF_FORMAT_MS_ADPCM, SF_FORMAT_GSM610}) {
    CAPTURE(coding);
    std::string file = encoded(SF_FORMAT_WAV | coding, floats(tone(5000)), 8000);
    const std::size_t fact = file.find("fact");
    REQUIRE(fact != std::string::npos);
    const std::uint64_t filled = [&] {
      std::string open = file;
      return samples_of(open.replace(fact + 8, 4, number(0, 4)));
    }();
    CHECK(filled >= 5000);
    file.replace(fact + 8, 4, number(4990, 4));
    CHECK(samples_of(file) == 4990);
    CHECK(contains(refusal_of(file.replace(fact + 8, 4, number(filled + 1, 4))),
                   std::to_string(filled + 1) + " samples"));
    CHECK(contains(refusal_of(file.replace(fact + 8, 4, number(1000, 4))), "1000 samples"));
  }
}

TEST_CASE("sound: what libsndfile reads beyond what is promised is refused by name") {
  const auto samples = floats(tone(2000));
  const struct {
    int format;
    const char* name;
  } others[] = {{SF_FORMAT_CAF | SF_FORMAT_PCM_16, "it is CAF"},
                {SF_FORMAT_VOC | SF_FORMAT_PCM_16, "it is VOC"},
                {SF_FORMAT_SVX | SF_FORMAT_PCM_16, "it is 16SV"},
                {SF_FORMAT_PAF | SF_FORMAT_PCM_16, "it is PAF"},
                {SF_FORMAT_AVR | SF_FORMAT_PCM_16, "it is AVR"},
                {SF_FORMAT_IRCAM | SF_FORMAT_PCM_16, "it is IRCAM"},
                {SF_FORMAT_PVF | SF_FORMAT_PCM_16, "it is PVF"},
                {SF_FORMAT_MAT5 | SF_FORMAT_PCM_16, "it is MAT"},
                {SF_FORMAT_WVE | SF_FORMAT_ALAW, "it is WVE"},
                {SF_FORMAT_SDS | SF_FORMAT_PCM_16, "it is SDS"},
                {SF_FORMAT_AU | SF_FORMAT_G721_32, "AU of encoding 23"},
                {SF_FORMAT_AIFF | SF_FORMAT_IMA_ADPCM, "AIFF of compression \"ima4\""},
                {SF_FORMAT_WAV | SF_FORMAT_G721_32, "WAVE of format 0x"},
                {SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_II, "MPEG audio of layer 2"}};
  for (const auto& other : others) {
    CAPTURE(other.name);
    if (!is_written(other.format)) continue;
    const std::string why = refusal_of(encoded(other.format, samples, 8000));
    CHECK(contains(why, other.name));
    CHECK(contains(why, "allowed: "));
  }
  CHECK(contains(refusal_of("key\ttext\n"), "it begins with 6b 65 79"));
}

TEST_CASE("sound: other kinds of samples in plain containers have all of them, too") {
  const auto samples = floats(tone(1000));
  for (const int format :
       {SF_FORMAT_WAV | SF_FORMAT_PCM_U8, SF_FORMAT_WAV | SF_FORMAT_PCM_24,
        SF_FORMAT_WAV | SF_FORMAT_DOUBLE, SF_FORMAT_WAV | SF_FORMAT_ULAW,
        SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, SF_FORMAT_W64 | SF_FORMAT_FLOAT,
        SF_FORMAT_RF64 | SF_FORMAT_PCM_32, SF_FORMAT_AIFF | SF_FORMAT_PCM_24,
        SF_FORMAT_AIFF | SF_FORMAT_FLOAT, SF_FORMAT_AIFF | SF_FORMAT_PCM_S8,
        SF_FORMAT_AIFF | SF_FORMAT_ULAW, SF_FORMAT_AU | SF_FORMAT_FLOAT,
        SF_FORMAT_AU | SF_FORMAT_ALAW, SF_FORMAT_AU | SF_ENDIAN_LITTLE | SF_FORMAT_PCM_16,
        SF_FORMAT_NIST | SF_FORMAT_PCM_24, SF_FORMAT_NIST | SF_FORMAT_ULAW}) {
    CAPTURE(format);
    const std::string file = encoded(format, samples);
    CHECK(samples_of(file) == samples.size());
    check_cuts(file, 331);
  }
}
