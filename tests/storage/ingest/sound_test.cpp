#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/process.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr int kFlac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
constexpr int kFlac24 = SF_FORMAT_FLAC | SF_FORMAT_PCM_24;

struct Encoding {
  const char* extension;
  int format;
  int rate;
};
/// Opus takes 8 to 48 kHz of its own choice, MP3 from 8 kHz on.
constexpr std::array<Encoding, 5> kEncodings = {{
    {".wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000},
    {".flac", kFlac, 16000},
    {".ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000},
    {".opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000},
    {".mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 16000},
}};

Result<IngestReport> store(const Place& place, const SoundSourceOptions& options = {},
                           const How& how = {}) {
  const auto list = find_files(place.folder / "in", audio_extensions());
  REQUIRE(list);
  const auto source = sound_source(options, list->files);
  return place.take(how, *source, list->files);
}

IngestReport stored(const Place& place, const SoundSourceOptions& options = {},
                    const How& how = {}) {
  auto report = store(place, options, how);
  REQUIRE_MESSAGE(report, report.error().message);
  return *std::move(report);
}

template <class T>
std::vector<T> values_of(const FieldValue& field) {
  std::vector<T> values(field.bytes.size() / sizeof(T));
  std::memcpy(values.data(), field.bytes.data(), field.bytes.size());
  return values;
}

std::filesystem::path made_in(const Place& place, const std::string& name) {
  std::filesystem::create_directories(place.in(name).parent_path());
  return place.in(name);
}

}  // namespace

TEST_CASE("storage: sound is stored as its samples, with a rate each") {
  const Place place;
  write_file(place.in("a.wav"), wav(tone(1000), {8000, 1}));
  encode(made_in(place, "b.flac"), kFlac, floats(tone(3000, 2)), 22050);
  const auto report = stored(place);
  CHECK_FALSE(report.failure);
  CHECK(report.figures.frames == 4000);
  CHECK(report.figures.seconds == doctest::Approx(0.125 + 3000 / 22050.0));
  const auto snapshot = place.snapshot();
  CHECK(snapshot->schema().fields[0].dtype == DType::int16);
  const std::vector<std::uint32_t> lengths(snapshot->lengths().begin(), snapshot->lengths().end());
  CHECK(lengths == std::vector<std::uint32_t>{1000, 3000});
  CHECK(values_of<std::int16_t>(snapshot->record(Ordinal{0})->field(0)) == tone(1000));
  CHECK(values_of<std::int16_t>(snapshot->record(Ordinal{1})->field(0)) == tone(3000, 2));
  // Known to plans, which read no record.
  CHECK(snapshot->field_lengths(1)[0] == 8000);
  CHECK(snapshot->field_lengths(1)[1] == 22050);
}

TEST_CASE("storage: samples of more than 16 bits are stored as float32, all of a dataset's") {
  const Place place;
  auto fine = floats(tone(500));
  fine[7] += 0x1p-20F;
  write_file(place.in("a.wav"), wav(tone(100)));
  encode(made_in(place, "b.flac"), kFlac24, fine);
  stored(place);
  const auto snapshot = place.snapshot();
  CHECK(snapshot->schema().fields[0].dtype == DType::float32);
  CHECK(values_of<float>(snapshot->record(Ordinal{0})->field(0)) == floats(tone(100)));
  CHECK(values_of<float>(snapshot->record(Ordinal{1})->field(0)) == fine);
}

TEST_CASE("storage: a file of more bits is refused by a dataset of int16, or rounded on request") {
  const Place place;
  const std::vector<float> samples = {0.5F / 32768, 1.5F / 32768, 2.5F / 32768, -0.5F / 32768,
                                      0.99999F,     -1.0F,        1.5F,         -1.5F};
  write_file(place.in("a.wav"), wav(tone(100)));
  stored(place);
  encode(made_in(place, "b.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, samples);
  How how;
  how.resume = true;
  SoundSourceOptions options;
  SUBCASE("refused") {
    options.present = place.snapshot()->schema().fields[0].dtype;
    const auto report = stored(place, options, how);
    REQUIRE(report.failure);
    CHECK(report.failure->code == ErrorCode::schema_mismatch);
  }
  SUBCASE("rounded to even, and within bounds") {
    options.samples = DType::int16;
    CHECK_FALSE(stored(place, options, how).failure);
    CHECK(values_of<std::int16_t>(place.snapshot()->record(Ordinal{1})->field(0)) ==
          std::vector<std::int16_t>{0, 2, 2, 0, 32767, -32768, 32767, -32768});
  }
}

TEST_CASE("storage: a wide file beyond those looked at is an error of that file") {
  const Place place;
  for (int i = 0; i < 600; ++i) {
    const std::string name = std::to_string(1000 + i) + ".wav";
    if (i == 301) {
      encode(made_in(place, name), SF_FORMAT_WAV | SF_FORMAT_PCM_24, floats(tone(100)));
    } else {
      write_file(place.in(name), wav(tone(10)));
    }
  }
  How how;
  how.on_error = OnError::skip;
  const auto report = stored(place, {}, how);
  REQUIRE(report.skipped.size() == 1);
  CHECK(report.skipped[0].ends_with(
      "1301.wav: its samples have more than 16 bits, the dataset's are int16; round them with "
      "--samples int16, or make the dataset with --samples float32"));
}

TEST_CASE("storage: encoded files are stored as they came, and as long as what they decode to") {
  const Place place;
  const std::vector<float> samples = floats(tone(20000));
  for (const Encoding& each : kEncodings) {
    encode(made_in(place, std::string("a") + each.extension + "/x" + each.extension), each.format,
           samples, each.rate);
  }
  SoundSourceOptions options;
  options.encoded = true;
  CHECK(stored(place, options).figures.added == kEncodings.size());
  const auto snapshot = place.snapshot();
  const auto list = find_files(place.folder / "in", audio_extensions());
  REQUIRE(list->files.size() == kEncodings.size());
  for (std::size_t i = 0; i < list->files.size(); ++i) {
    const auto& path = list->files[i].path;
    CAPTURE(path);
    const auto audio = read_audio(path, ChannelChoice::only);
    REQUIRE(audio);
    const auto record = snapshot->record(Ordinal{i});
    REQUIRE(record);
    CHECK(record->length() == audio->samples.size());
    CHECK(record->length() >= samples.size());
    const auto bytes = values_of<char>(record->field(1));
    CHECK(std::string(bytes.begin(), bytes.end()) == read_file(path));
    CHECK(snapshot->field_lengths(2)[i] == audio->sample_rate);
  }
}

TEST_CASE("storage: a cut file of any encoding is refused, or as long as what is left of it") {
  const Place place;
  const std::vector<float> samples = floats(tone(30000));
  for (const Encoding& each : kEncodings) {
    const auto path = made_in(place, std::string("x") + each.extension);
    encode(path, each.format, samples, each.rate);
    const std::string whole = read_file(path);
    for (std::size_t size = 0; size < whole.size(); size += whole.size() / 50 + 1) {
      CAPTURE(path);
      CAPTURE(size);
      write_file(path, whole.substr(0, size));
      std::uint64_t taken = 0;
      const auto extent =
          decode_audio(path, ChannelChoice::only,
                       [&taken](std::span<const float> block) { taken += block.size(); });
      if (!extent) continue;
      CHECK(extent->samples == taken);
      CHECK(extent->samples < 2 * samples.size());
    }
  }
}

TEST_CASE("storage: of several channels the one that is chosen is stored") {
  const std::string stereo = wav({100, 300, -200, 0}, {8000, 2});
  const Place refused;
  write_file(refused.in("a.wav"), stereo);
  const auto report = stored(refused);
  CHECK(report.failure);
  const Place place;
  write_file(place.in("a.wav"), stereo);
  SoundSourceOptions options;
  options.channels = ChannelChoice::mix;
  const auto mixed = stored(place, options);
  CHECK_FALSE(mixed.failure);
  CHECK(values_of<std::int16_t>(place.snapshot()->record(Ordinal{0})->field(0)) ==
        std::vector<std::int16_t>{200, -100});
}

TEST_CASE("storage: sound and features do not go into one dataset") {
  const Place place;
  write_file(place.in("a.wav"), wav(tone(1000)));
  place.audio();
  CHECK(store(place).error().code == ErrorCode::schema_mismatch);
}
