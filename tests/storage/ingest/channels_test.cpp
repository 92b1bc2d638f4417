// Files of which each channel is a sequence of its own.

#include <doctest/doctest.h>

#include <cstring>

#include "tests/storage/ingest/encode.h"
#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Samples = std::vector<std::int16_t>;

/// Channels 1, 2, ... are tones of these numbers.
Samples tones_of(const std::vector<unsigned>& numbers, std::size_t samples = 1000) {
  Samples all(samples * numbers.size());
  for (std::size_t c = 0; c < numbers.size(); ++c) {
    const Samples one = tone(samples, numbers[c]);
    for (std::size_t i = 0; i < samples; ++i) all[i * numbers.size() + c] = one[i];
  }
  return all;
}

std::string channels_wav(const std::vector<unsigned>& numbers, std::size_t samples = 1000) {
  const auto channels = static_cast<std::uint16_t>(numbers.size());
  return wav(tones_of(numbers, samples), {8000, channels});
}

/// The folder of files, by channel.
std::vector<SourceFile> channels_in(const Place& place) {
  auto list = find_files(place.folder / "in", audio_extensions());
  REQUIRE_MESSAGE(list, list.error().message);
  return by_channels(std::move(list->files), 3);
}

SoundSourceOptions each_channel() {
  SoundSourceOptions options;
  options.channels = ChannelChoice::each;
  return options;
}

IngestReport take_channels(const Place& place, const std::vector<SourceFile>& files, How how = {}) {
  const auto source = sound_source(each_channel(), files);
  auto report = place.take(how, *source, files);
  REQUIRE_MESSAGE(report, report.error().message);
  return *std::move(report);
}

How skipping_channels() {
  How how;
  how.on_error = OnError::skip;
  return how;
}

Samples stored_channel(const Place& place, std::uint64_t ordinal) {
  const auto snapshot = place.snapshot();
  const auto record = snapshot->record(Ordinal{ordinal});
  REQUIRE(record);
  Samples samples(record->length());
  std::memcpy(samples.data(), record->field(0).bytes.data(), record->field(0).bytes.size());
  return samples;
}

std::vector<std::string> channel_keys(const std::vector<SourceFile>& files) {
  std::vector<std::string> keys;
  for (const SourceFile& file : files) keys.push_back(file.key);
  return keys;
}

/// The texts of transcripts for each channel of `call`, of two channels, and of `x/mono`.
std::vector<std::string> channel_texts(const std::string& table) {
  const Place place;
  write_file(place.in("call.wav"), channels_wav({1, 2}));
  write_file(place.in("x/mono.wav"), channels_wav({3}));
  write_file(place.folder / "texts", table);
  AnnotationOptions options;
  options.transcripts = place.folder / "texts";
  const auto files = channels_in(place);
  const auto annotations = Annotations::create(options, files);
  REQUIRE_MESSAGE(annotations, annotations.error().message);
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    std::vector<FieldValue> values;
    if (auto known = annotations->append_values(file, values); known) {
      const auto* text = reinterpret_cast<const char*>(values[0].bytes.data());
      found.emplace_back(text, values[0].length);
    } else {
      found.push_back(known.error().message);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("storage: each channel is a sequence, by file and within one by its number") {
  const Place place;
  const std::vector<unsigned> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  write_file(place.in("a/array.wav"), channels_wav(numbers));
  write_file(place.in("b/call.wav"), channels_wav({13, 14}));
  write_file(place.in("b/mono.wav"), channels_wav({15}));
  const auto report = take_channels(place, channels_in(place));
  CHECK(report.figures.added == 15);
  Keys wanted;
  for (const unsigned number : numbers) wanted.push_back("a/array#" + std::to_string(number));
  wanted.insert(wanted.end(), {"b/call#1", "b/call#2", "b/mono#1"});
  CHECK(place.keys() == wanted);
  for (unsigned i = 0; i < 15; ++i) CHECK(stored_channel(place, i) == tone(1000, i + 1));
}

TEST_CASE("storage: features of a channel are those of a file that has it alone") {
  AudioSourceOptions options;
  const Place alone;
  write_file(alone.in("a.wav"), channels_wav({2}));
  alone.audio();
  const Place place;
  write_file(place.in("a.wav"), channels_wav({1, 2}));
  options.channels = ChannelChoice::each;
  const auto files = channels_in(place);
  const auto source = audio_source(options, files);
  REQUIRE(source);
  REQUIRE(place.take({}, **source, files));
  const auto ours = place.snapshot();
  const auto theirs = alone.snapshot();
  const auto record = ours->record(Ordinal{1});
  CHECK(record->key() == "a#2");
  CHECK(std::ranges::equal(record->field(0).bytes, theirs->record(Ordinal{0})->field(0).bytes));
  const auto& settings = ours->schema().settings;
  CHECK(std::find(settings.begin(), settings.end(),
                  std::pair<std::string, std::string>("channel", "each")) != settings.end());
}

TEST_CASE("storage: channels of one key are an error of the second file, and of a segment") {
  const Place place;
  write_file(place.in("a.flac"), channels_wav({1, 2}));  // a WAVE by another name
  write_file(place.in("a.wav"), channels_wav({3, 4}));
  std::vector<SourceFile> files = channels_in(place);
  files.push_back({"a#2", place.in("a.wav"), {0, 0.1, 1}});
  const auto report = take_channels(place, files, skipping_channels());
  CHECK(place.keys() == Keys{"a#1", "a#2"});
  REQUIRE(report.skipped.size() == 3);
  for (const std::string& reason : report.skipped) {
    CHECK(contains(reason, "is also that of " + place.in("a.flac").string()));
  }
}

TEST_CASE("storage: an ingest by channels goes on within a file") {
  const Place place;
  write_file(place.in("a.wav"), channels_wav({1, 2, 3}));
  How how;
  how.watch = [](const IngestFigures& figures) { return figures.taken < 2; };
  CHECK(take_channels(place, channels_in(place), how).interrupted);
  CHECK(place.keys() == Keys{"a#1", "a#2"});
  how = {};
  how.resume = true;
  CHECK(take_channels(place, channels_in(place), how).figures.present == 2);
  CHECK(place.keys() == Keys{"a#1", "a#2", "a#3"});
  CHECK(stored_channel(place, 2) == tone(1000, 3));
}

TEST_CASE("storage: a file whose header cannot be read is one error, whatever its channels are") {
  const Place place;
  write_file(place.in("bad.wav"), "no sound");
  std::filesystem::create_symlink("nowhere", place.in("link.wav"));
  write_file(place.in("good.wav"), channels_wav({1, 2}));
  const auto report = take_channels(place, channels_in(place), skipping_channels());
  CHECK(place.keys() == Keys{"good#1", "good#2"});
  REQUIRE(report.skipped.size() == 2);
  CHECK(contains(report.skipped[0], "bad.wav: not readable audio"));
  CHECK(contains(report.skipped[1], "link.wav: a link that leads nowhere"));
}

TEST_CASE("storage: of a damaged file each channel is an error that names it") {
  const Place place;
  encode(place.folder / "whole.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
         floats(tones_of({1, 2}, 20000)), 8000, 2);
  std::ifstream whole(place.folder / "whole.flac", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  for (std::size_t i = 0; i < 40; ++i) bytes[bytes.size() / 2 + i] = '\x55';
  write_file(place.in("a.flac"), bytes);
  const auto report = take_channels(place, channels_in(place), skipping_channels());
  CHECK(report.figures.added == 0);
  REQUIRE(report.skipped.size() == 2);
  CHECK(contains(report.skipped[0], "a.flac: channel 1: damaged"));
  CHECK(contains(report.skipped[1], "a.flac: channel 2: damaged"));
}

TEST_CASE("storage: each channel alone is bounded, and opposite channels are no loss") {
  const Place place;
  write_file(place.in("long.wav"), channels_wav({1, 2}, 16001));
  Samples opposite;
  for (const std::int16_t sample : tone(4000)) {
    opposite.push_back(sample);
    opposite.push_back(static_cast<std::int16_t>(-sample));
  }
  write_file(place.in("opposite.wav"), wav(opposite, {8000, 2}));
  auto options = each_channel();
  options.max_seconds = 2;
  const auto files = channels_in(place);
  const auto source = sound_source(options, files);
  const auto report = place.take(skipping_channels(), *source, files);
  REQUIRE(report);
  CHECK(place.keys() == Keys{"opposite#1", "opposite#2"});
  CHECK(report->figures.cancelled_files == 0);
  REQUIRE(report->skipped.size() == 2);
  CHECK(contains(report->skipped[1], "long.wav: channel 2: longer than the 2 s that are taken"));
}

TEST_CASE("storage: what a recorder left of a last frame is no sample of any channel") {
  const Place place;
  std::string bytes = channels_wav({1, 2});
  for (const std::size_t size_at : {4U, 40U}) bytes.replace(size_at, 4, "\xFF\xFF\xFF\xFF");
  for (const std::string rest : {"\x55", "\x55\x55", "\x55\x55\x55"}) {
    write_file(place.in("a" + std::to_string(rest.size()) + ".wav"), bytes + rest);
  }
  CHECK(take_channels(place, channels_in(place)).figures.added == 6);
  for (unsigned i = 0; i < 6; ++i) CHECK(stored_channel(place, i) == tone(1000, i % 2 + 1));
}

TEST_CASE("storage: a channel that a file lacks is an error, and so is none of each") {
  const Place place;
  write_file(place.in("a.wav"), channels_wav({1, 2}));
  const auto refusal = [&place](ChannelChoice choice, const SoundPart& part) {
    const auto audio = read_audio(place.in("a.wav"), choice, part);
    REQUIRE_FALSE(audio);
    CHECK(audio.error().code == ErrorCode::invalid_argument);
    return audio.error().message;
  };
  CHECK(contains(refusal(ChannelChoice::each, {0, SoundPart().end, 3}),
                 "a.wav: channel 3: the file has 2 channels"));
  CHECK(contains(refusal(ChannelChoice::each, {0, 0.1, 4000000000}), "the file has 2 channels"));
  CHECK(contains(refusal(ChannelChoice::each, {}),
                 "a.wav: each channel is a sound of its own, and none is named"));
  const std::string bytes = channels_wav({1, 2});
  const auto record = decode_bytes(
      std::as_bytes(std::span(bytes)), ChannelChoice::each, [](auto) {}, 1000);
  REQUIRE_FALSE(record);
  CHECK(record.error().code == ErrorCode::corrupt_record);
}

TEST_CASE("storage: files as they came are not stored by channel") {
  const Place place;
  write_file(place.in("a.wav"), channels_wav({1, 2}));
  auto options = each_channel();
  options.encoded = true;
  const auto files = channels_in(place);
  const auto source = sound_source(options, files);
  const auto report = place.take(skipping_channels(), *source, files);
  REQUIRE(report);
  CHECK(report->figures.added == 0);
  CHECK(report->skipped.size() == 2);
}

TEST_CASE("storage: a channel has the text of its own row, or otherwise that of its file") {
  CHECK(channel_texts("call both\nmono one\n") == Keys{"both", "both", "one"});
  CHECK(channel_texts("call.wav both\nwavs/x/mono.wav one\n") == Keys{"both", "both", "one"});
  CHECK(channel_texts("call#2 second\ncall both\nx/mono one\n") == Keys{"both", "second", "one"});
  CHECK(channel_texts("call both\nin/call#1 first\nmono#1 one\n") == Keys{"first", "both", "one"});
  CHECK(channel_texts("call#1 first\nx/mono one\n") ==
        Keys{"first", "key \"call#2\": no transcript", "one"});
}

TEST_CASE(
    "storage: a row for a channel goes where two files end alike, and one for both does not") {
  const Place place;
  write_file(place.in("a/call.wav"), channels_wav({1, 2}));
  write_file(place.in("b/call.wav"), channels_wav({1, 2}));
  write_file(place.folder / "speakers", "a/call ann\nb/call#1 bob\ncall carl\nb/call#2 dora\n");
  AnnotationOptions options;
  options.label_tables.push_back({"speaker", place.folder / "speakers"});
  const auto files = channels_in(place);
  const auto annotations = Annotations::create(options, files);
  REQUIRE(annotations);
  std::vector<std::int32_t> labels;
  for (const SourceFile& file : files) {
    std::vector<FieldValue> values;
    REQUIRE(annotations->append_values(file, values));
    std::memcpy(&labels.emplace_back(), values[0].bytes.data(), sizeof(std::int32_t));
  }
  CHECK(labels == std::vector<std::int32_t>{0, 0, 1, 2});
  REQUIRE(annotations->unmatched().size() == 1);
  CHECK(contains(annotations->unmatched()[0], "1 of 4 keys"));
}

TEST_CASE("storage: a name in another Unicode normal form is told of a channel's file, too") {
  const Place place;
  write_file(place.in("caf\xC3\xA9.wav"), channels_wav({1, 2}));
  write_file(place.folder / "texts", "cafe\xCC\x81 text\n");
  AnnotationOptions options;
  options.transcripts = place.folder / "texts";
  const auto files = channels_in(place);
  const auto annotations = Annotations::create(options, files);
  REQUIRE(annotations);
  std::vector<FieldValue> values;
  const auto known = annotations->append_values(files[1], values);
  REQUIRE_FALSE(known);
  CHECK(contains(known.error().message, "another Unicode normal form"));
}

TEST_CASE("storage: segments are of one channel where the table says so, otherwise of each") {
  const Place place;
  write_file(place.in("call.wav"), channels_wav({1, 2}, 8000));
  write_file(place.in("odd#2.wav"), channels_wav({3}, 8000));
  write_file(place.folder / "segments",
             "own call#2 0.5 1\nboth call 0 0.25\nshort call.wav#1 0 0.1\nnone call#3 0 1\n"
             "odd odd#2 0 0.1\n");
  auto list = find_files(place.folder / "in", audio_extensions());
  auto segments = read_segments(place.folder / "segments", list->files, true);
  REQUIRE_MESSAGE(segments, segments.error().message);
  CHECK(segments->unmatched.empty());
  const auto files = by_channels(std::move(segments->files), 1);
  CHECK(channel_keys(files) == Keys{"own", "both#1", "both#2", "short", "none", "odd#1"});
  const auto report = take_channels(place, files, skipping_channels());
  CHECK(place.keys() == Keys{"own", "both#1", "both#2", "short", "odd#1"});
  const Samples second = tone(8000, 2);
  CHECK(stored_channel(place, 0) == Samples(second.begin() + 4000, second.end()));
  CHECK(stored_channel(place, 2) == Samples(second.begin(), second.begin() + 2000));
  CHECK(stored_channel(place, 4) == tone(800, 3));
  REQUIRE(report.skipped.size() == 1);
  CHECK(contains(report.skipped[0], "call.wav: channel 3: the file has 2 channels"));
}

TEST_CASE("storage: a segment's recording names a channel only where all are taken, by a number") {
  const Place place;
  write_file(place.folder / "segments", "a call#2 0 1\nb call#0 0 1\nc call# 0 1\nd call#x 0 1\n");
  const std::vector<SourceFile> files = {{"call", "call.wav"}};
  const auto by_channel = read_segments(place.folder / "segments", files, true);
  REQUIRE(by_channel);
  CHECK(by_channel->files.size() == 1);
  CHECK(by_channel->files[0].part.channel == 2);
  CHECK(contains(by_channel->unmatched, "3 recordings"));
  CHECK_FALSE(read_segments(place.folder / "segments", files));
}
