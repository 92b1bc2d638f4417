#include <doctest/doctest.h>

#include <algorithm>

#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/process.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr int kWaveFloat = SF_FORMAT_WAV | SF_FORMAT_FLOAT;

IngestReport taken_as(const Place& place, const SoundSourceOptions& options,
                      std::span<const SourceFile> files) {
  const auto source = sound_source(options, files);
  How how;
  how.on_error = OnError::skip;
  const auto report = place.take(how, *source, files);
  REQUIRE_MESSAGE(report, report.error().message);
  return *report;
}

IngestReport taken_as(const Place& place, const SoundSourceOptions& options) {
  const auto list = find_files(place.folder / "in", audio_extensions());
  REQUIRE(list);
  return taken_as(place, options, list->files);
}

std::filesystem::path input(const Place& place, const std::string& name) {
  std::filesystem::create_directories(place.in(name).parent_path());
  return place.in(name);
}

}  // namespace

TEST_CASE("storage: sound that is stored is no longer than what is allowed") {
  for (const bool encoded : {false, true}) {
    CAPTURE(encoded);
    const Place place;
    write_file(place.in("a.wav"), wav(tone(16000)));
    write_file(place.in("b.wav"), wav(tone(16001)));
    encode(input(place, "c.mp3"), SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, floats(tone(40000)));
    SoundSourceOptions options;
    options.encoded = encoded;
    options.max_seconds = 2;
    const auto report = taken_as(place, options);
    CHECK(report.figures.added == 1);
    REQUIRE(report.skipped.size() == 2);
    CHECK(contains(report.skipped[0],
                   "b.wav: longer than the 2 s that are taken (--max-seconds): 2.0 s; a table of "
                   "segments cuts it (--segments)"));
    CHECK(contains(report.skipped[1], "c.mp3: longer than the 2 s that are taken"));
  }
}

TEST_CASE("storage: an hour is what stored sound has at most unless something else is said") {
  const Place place;
  std::string hours = wav(tone(8), {8000, 1}).substr(0, 44);
  constexpr std::uint32_t kBytes = 3601 * 16000;
  for (const auto& [at, bytes] : {std::pair(4, kBytes + 36), std::pair(40, kBytes)}) {
    std::memcpy(hours.data() + at, &bytes, sizeof bytes);
  }
  write_file(place.in("a.wav"), hours);
  std::filesystem::resize_file(place.in("a.wav"), 44 + kBytes);  // the disk has none of it
  write_file(place.in("b.wav"), wav(tone(10)));
  const auto report = taken_as(place, {});
  REQUIRE(report.skipped.size() == 1);
  CHECK(contains(report.skipped[0], "longer than the 3600 s that are taken"));
}

TEST_CASE("storage: a recording that segments cut may be longer, and a segment may not") {
  const Place place;
  write_file(place.in("long.wav"), wav(tone(80000)));
  const std::vector<SourceFile> files = {{"a", place.in("long.wav"), {1, 2.5}},
                                         {"b", place.in("long.wav"), {3, 6}},
                                         {"c", place.in("long.wav"), {8, SoundPart().end}}};
  SoundSourceOptions options;
  options.max_seconds = 2;
  const auto report = taken_as(place, options, files);
  CHECK(report.figures.added == 2);
  REQUIRE(report.skipped.size() == 1);
  CHECK(contains(report.skipped[0], "longer than the 2 s"));
}

TEST_CASE("storage: a recording of many segments is looked at once") {
  const Place place;
  write_file(place.in("a.wav"), wav(tone(100)));
  SoundFiles files;
  const auto first = files.get(place.in("a.wav"));
  REQUIRE(first);
  CHECK(files.get(place.in("a.wav"))->get() == first->get());
  // Others take its place in the end.
  for (std::size_t i = 0; i < SoundFiles::kMostKept; ++i) {
    CHECK_FALSE(files.get(place.in(std::to_string(i))));
  }
  CHECK(files.get(place.in("a.wav"))->get() != first->get());
}

TEST_CASE("storage: samples that int16 does not hold are counted") {
  const Place place;
  encode(input(place, "a.wav"), kWaveFloat, {0.5F, 1.0F, -1.0F, 1.5F, -10'000.0F, 3.0F});
  encode(input(place, "b.wav"), kWaveFloat, {0.5F, -0.5F});
  SoundSourceOptions options;
  options.samples = DType::int16;
  const auto report = taken_as(place, options);
  CHECK(report.figures.clipped_samples == 3);
  CHECK(report.figures.clipped_files == 1);
  CHECK(report.first_clipped.ends_with("a.wav"));
  CHECK(report.figures.cancelled_files == 0);
}

TEST_CASE("storage: channels that cancel out in their mean are counted") {
  std::vector<std::int16_t> opposite, alike;
  for (const std::int16_t sample : tone(500)) {
    opposite.push_back(sample);
    opposite.push_back(static_cast<std::int16_t>(-sample - 1));
    alike.push_back(sample);
    alike.push_back(static_cast<std::int16_t>(sample / 2));
  }
  for (const bool encoded : {false, true}) {
    const Place place;
    write_file(place.in("a.wav"), wav(alike, {8000, 2}));
    write_file(place.in("b.wav"), wav(opposite, {8000, 2}));
    write_file(place.in("c.wav"), wav(std::vector<std::int16_t>(500), {8000, 2}));
    SoundSourceOptions options;
    options.encoded = encoded;
    options.channels = ChannelChoice::mix;
    const auto report = taken_as(place, options);
    CHECK(report.figures.added == 3);
    CHECK(report.figures.cancelled_files == 1);
    CHECK(report.first_cancelled.ends_with("b.wav"));
  }
}

TEST_CASE("storage: MP3 that was cut out of a longer one is taken with a remark") {
  // Frames of silence at 32 kbit/s and 16 kHz, without a checksum; the byte after the head says
  // how far back a frame's sound begins.
  const auto mp3 = [](char back) {
    std::string file;
    for (int i = 0; i < 12; ++i) {
      file += "\xff\xf3\x48\xc0" + std::string(1, i == 0 ? back : '\0') + std::string(139, '\0');
    }
    return file;
  };
  for (const bool encoded : {false, true}) {
    const Place place;
    write_file(place.in("a.mp3"), mp3(0));
    write_file(place.in("b.mp3"), mp3(100));
    write_file(place.in("c.mp3"), mp3(1));
    SoundSourceOptions options;
    options.encoded = encoded;
    const auto report = taken_as(place, options);
    CHECK(report.figures.added == 3);
    REQUIRE(report.remarks.size() == 1);
    CHECK(contains(report.remarks[0], "2 sequences: MP3 that was cut out of a longer one"));
    CHECK(contains(report.remarks[0], "b.mp3"));
  }
}

TEST_CASE("storage: sound shorter than a window is refused with both lengths") {
  const Place place;
  write_file(place.in("a.wav"), wav(tone(100)));
  How how;
  how.on_error = OnError::skip;
  write_file(place.in("b.wav"), wav(tone(1000)));
  // Which pads nothing, as others do.
  how.audio.front_end = *front_end_like("kaldi", FeatureKind::logmel);
  const auto report = place.audio(how);
  REQUIRE(report.skipped.size() == 1);
  CHECK(contains(report.skipped[0],
                 "a.wav: no frames: it has 100 samples (12.5 ms), one frame takes 200 (25.0 ms)"));
}

TEST_CASE("storage: what is stored as it came decodes in a feed, or is refused") {
  const Place place;
  const auto samples = floats(tone(20000));
  encode(input(place, "x.mp3"), SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, samples, 16000);
  const std::string mp3 = read_file(place.in("x.mp3"));
  write_file(place.in("a.mp3"), std::string(2000, '\0') + mp3);
  write_file(place.in("b.wav"), mp3);
  write_file(place.in("c.mp3"), std::string(100'000, '\0') + mp3);
  write_file(place.in("d.sph"), wav(tone(100)));
  SoundSourceOptions options;
  options.encoded = true;
  const auto report = taken_as(place, options);
  CHECK(report.skipped.size() == 1);
  const auto snapshot = place.snapshot();
  REQUIRE(snapshot->sequences() == 4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto record = snapshot->record(Ordinal{i});
    REQUIRE(record);
    const auto extent = decode_bytes(
        record->field(1).bytes, ChannelChoice::only, [](auto) {}, record->length());
    REQUIRE_MESSAGE(extent, extent.error().message);
    CHECK(extent->samples == record->length());
  }
}
