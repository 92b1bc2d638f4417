#include <doctest/doctest.h>

#include <cstring>

#include "tests/storage/ingest/ingest_place.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("storage: a folder of audio becomes features, in the order of its paths") {
  const Place place;
  write_file(place.in("b.wav"), wav(tone(280)));
  write_file(place.in("a/z.WAV"), wav(tone(1000)));
  write_file(place.in("a/notes.txt"), "no audio");
  const auto report = place.audio();
  CHECK(report.figures.added == 2);
  CHECK(report.figures.frames == 13);
  CHECK(report.figures.seconds == doctest::Approx(0.16));
  CHECK(place.keys() == Keys{"a/z", "b"});
  const auto front_end = FrontEnd::create({}, 8000);
  const auto read = read_audio(place.in("a/z.WAV"), ChannelChoice::only);
  const auto expected = front_end->compute(read->samples);
  const auto snapshot = place.snapshot();
  const auto field = snapshot->record(Ordinal{0})->field(0);
  REQUIRE(field.bytes.size() == expected.size() * 4);
  CHECK(std::memcmp(field.bytes.data(), expected.data(), field.bytes.size()) == 0);
  CHECK(snapshot->schema().fields[0].shape == std::vector<std::uint32_t>{40});
  CHECK(snapshot->schema().settings.back() ==
        std::pair<std::string, std::string>("source", "test"));
}

TEST_CASE("storage: ordinals and content do not depend on the number of threads") {
  const Place one;
  const Place many;
  one.write_tones(60);
  many.write_tones(60);
  How how;
  how.threads = 1;
  one.audio(how);
  how.threads = 7;
  many.audio(how);
  CHECK(one.keys() == many.keys());
  CHECK(one.snapshot()->content() == many.snapshot()->content());
}

TEST_CASE("storage: a label is the first folder below the source folder") {
  const Place place;
  write_file(place.in("it/digits/1.wav"), wav(tone(300)));
  write_file(place.in("en/1.wav"), wav(tone(300)));
  How how;
  how.annotations.label_from_folder = true;
  place.audio(how);
  const auto snapshot = place.snapshot();
  CHECK(snapshot->schema().fields[1].categories == Keys{"en", "it"});
  std::int32_t label = -1;
  std::memcpy(&label, snapshot->record(Ordinal{1})->field(1).bytes.data(), 4);
  CHECK(label == 1);
}

TEST_CASE("storage: a file in no folder has no label") {
  const Place place;
  write_file(place.in("en/1.wav"), wav(tone(300)));
  write_file(place.in("loose.wav"), wav(tone(300)));
  How how;
  how.annotations.label_from_folder = true;
  const auto report = place.audio(how);
  CHECK(report.failure->message == place.in("loose.wav").string() +
                                       ": key \"loose\": it lies in no folder to take the label "
                                       "from");
}

TEST_CASE("storage: transcripts are stored byte by byte under their keys") {
  const Place place;
  write_file(place.in("a/1.wav"), wav(tone(300)));
  write_file(place.in("a/2.wav"), wav(tone(300)));
  write_file(place.folder / "table", "a/2\tgrüß\tGott\r\na/1\t\nz\tunused\n");
  How how;
  how.annotations.transcripts = place.folder / "table";
  place.audio(how);
  const auto snapshot = place.snapshot();
  CHECK(snapshot->record(Ordinal{0})->field(1).length == 0);
  const auto text = snapshot->record(Ordinal{1})->field(1).bytes;
  CHECK(std::string(reinterpret_cast<const char*>(text.data()), text.size()) == "grüß\tGott");
}

TEST_CASE("storage: a transcript table with a mistake is refused with its line") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(300)));
  How how;
  how.annotations.transcripts = place.folder / "table";
  const auto refusal = [&place, &how](const std::string& table) {
    write_file(place.folder / "table", table);
    return place.take(how, true).error().message;
  };
  CHECK(refusal("1\tone\n two\n").find("line 2 is not key blank text") != std::string::npos);
  CHECK(refusal("1\tone\n1\ttwo\n").find("line 2: key \"1\" was there") != std::string::npos);
  write_file(place.folder / "table", "2\ttwo\n");
  CHECK(place.audio(how).failure->message.find("key \"1\": no transcript") != std::string::npos);
}

TEST_CASE("storage: files and folders of an excluded name are left out") {
  const Place place;
  write_file(place.in("a/silence/1.wav"), "");
  write_file(place.in("silence.wav"), "");
  write_file(place.in("a/2.wav"), "");
  const std::vector<std::string> excluded = {"silence", "silence.wav"};
  const auto files = find_files(place.folder / "in", audio_extensions(), excluded);
  REQUIRE(files);
  REQUIRE(files->files.size() == 1);
  CHECK(files->files.front().key == "a/2");
}
