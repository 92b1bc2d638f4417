#include <cstdio>

#include "tests/storage/sound/sound_bytes.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kSpf = 576;  // samples of a frame at 16 kHz
constexpr std::size_t kSound = 50'000;

/// MP3 as LAME makes it, with a first frame that describes the others.
const std::string& described() {
  static const std::string file =
      encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, floats(tone(kSound)));
  return file;
}

/// Bytes of the frame that begins there: MPEG 2, layer 3.
std::size_t frame_bytes(const std::string& file, std::size_t at) {
  constexpr std::size_t kKilobits[] = {0,  8,  16, 24,  32,  40,  48, 56,
                                       64, 80, 96, 112, 128, 144, 160};
  REQUIRE(static_cast<unsigned char>(file[at]) == 0xff);
  const auto byte = static_cast<unsigned char>(file[at + 2]);
  return 72'000 * kKilobits[byte >> 4] / 16'000 + (byte >> 1 & 1);
}

/// Where each frame begins, and the end of the last one.
std::vector<std::size_t> places(const std::string& file) {
  std::vector<std::size_t> all{0};
  while (all.back() < file.size()) all.push_back(all.back() + frame_bytes(file, all.back()));
  REQUIRE(all.back() == file.size());
  return all;
}

std::string plain() { return described().substr(places(described())[1]); }

std::size_t claim_at() {
  const std::size_t xing = described().find("Xing"), info = described().find("Info");
  REQUIRE(std::min(xing, info) < 100);
  return std::min(xing, info) + 8;
}

std::string claiming(std::uint64_t frames) {
  std::string file = described();
  return file.replace(claim_at(), 4, number(frames, 4, true));
}

}  // namespace

TEST_CASE("sound: MP3 has the samples of all its frames, or those that its first frame leaves") {
  const std::uint64_t frames = places(described()).size() - 2;
  CHECK(samples_of(described()) == kSound);
  CHECK(samples_of(plain()) == frames * kSpf);
}

TEST_CASE("sound: MP3 of louder and quieter parts has all of them without a frame that says so") {
  auto sound = floats(tone(kSound));
  for (std::size_t i = 20'000; i < sound.size(); ++i) sound[i] = 0;
  const std::string file = encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, sound);
  const auto all = places(file);
  CHECK(samples_of(file.substr(all[1])) == (all.size() - 2) * kSpf);
}

TEST_CASE("sound: MP3 whose first frame promises other frames than there are is refused") {
  const std::uint64_t frames = places(described()).size() - 2;
  CHECK(samples_of(claiming(frames)) == kSound);
  CHECK(samples_of(claiming(frames + 1)) >= kSound);  // it counts itself
  CHECK(samples_of(claiming(0)) == frames * kSpf);    // it does not say
  for (const std::uint64_t wrong : {frames + 2, 2 * frames, frames - 2, frames / 2}) {
    const std::string why = refusal_of(claiming(wrong));
    CHECK(contains(why, "promises " + std::to_string(wrong) + " frames, the file has " +
                            std::to_string(frames)));
  }
}

TEST_CASE("sound: MP3 files one after another are taken whole, or refused with both numbers") {
  const std::uint64_t frames = places(described()).size() - 2;
  CHECK(samples_of(plain() + plain()) == 2 * frames * kSpf);
  CHECK(contains(refusal_of(described() + described()), "promises " + std::to_string(frames) +
                                                            " frames, the file has " +
                                                            std::to_string(2 * frames + 1)));
  const std::string id3v1 = "TAG" + std::string(125, ' ');
  const std::string id3v2 = std::string("ID3\4\0\0\0\0\0\x20", 10) + std::string(32, '\0');
  CHECK(samples_of(id3v2 + plain() + id3v1 + id3v2 + plain() + id3v1) == 2 * frames * kSpf);
  CHECK(samples_of(id3v2 + described() + id3v1) == kSound);
}

TEST_CASE("sound: MP3 that ends within a frame is refused") {
  const auto all = places(plain());
  for (std::size_t i = 5; i + 1 < all.size(); i += 9) {
    for (const std::size_t more : {std::size_t{1}, std::size_t{3}, std::size_t{10}}) {
      CAPTURE(i);
      CHECK(contains(refusal_of(plain().substr(0, all[i] + more)), "truncated: its last frame"));
    }
  }
  check_cuts(described(), described().size() / 40);
}

TEST_CASE("sound: MP3 is found after what stands before it, by its content alone") {
  for (const std::size_t zeros : {1U, 2000U, 40'000U}) {
    CHECK(samples_of(std::string(zeros, '\0') + described()) == kSound);
  }
  CHECK(refusal_of(std::string(100'000, '\0') + described()) != "");
  CHECK(samples_of("some words" + described()) == kSound);
}

TEST_CASE("sound: MP3 with bytes that are no frame is damaged") {
  std::string file = plain();
  file[places(file)[20]] = 'x';
  CHECK(contains(refusal_of(file), "damaged: no frame at byte"));
  CHECK(contains(refusal_of(plain() + "abcdefgh"), "damaged: no frame at byte"));
  CHECK(samples_of(plain() + std::string(100, '\0')) > 0);
  const std::string other =
      encoded(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, floats(tone(9000)), 24'000);
  CHECK(contains(refusal_of(plain() + other), "at 24000 Hz from there on"));
}

TEST_CASE("sound: a frame of MP3 that cannot be decoded is an error, and not a line on stderr") {
  // The lengths of its parts, which stand after the first four bytes, are more than it has.
  std::string file = plain();
  const std::size_t at = places(file)[30] + 4;
  file.replace(at + 1, 7, std::string(7, '\xff'));
  CHECK(contains(refusal_of(file), "cannot be decoded"));
}
