#include "storage/ingest/segments.h"

#include <doctest/doctest.h>

#include <cmath>

#include "storage/ingest/ingest_source.h"
#include "tests/storage/ingest/ingest_place.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

const std::vector<SourceFile>& recordings() {
  static const std::vector<SourceFile> files = {
      {"a/one", "a/one.wav", {}}, {"a/two", "a/two.wav", {}}, {"b/two", "b/two.wav", {}}};
  return files;
}

Result<Segments> segments_of(const std::string& table) {
  const TemporaryFolder folder;
  write_file(folder / "segments", table);
  return read_segments(folder / "segments", recordings());
}

std::string segments_refusal(const std::string& table) {
  const auto segments = segments_of(table);
  REQUIRE_FALSE(segments);
  CHECK(segments.error().code == ErrorCode::invalid_argument);
  const std::string& message = segments.error().message;
  return message.substr(message.find("segments: ") + 10);
}

}  // namespace

TEST_CASE("storage: segments stand by file, then by line; recordings by key or by short name") {
  const auto segments = segments_of(
      "late b/two 3 -1\n"
      "x one 1.5 2\n"
      "\n"
      "first a/one 0 1e-1\r\n");
  REQUIRE_MESSAGE(segments, segments.error().message);
  REQUIRE(segments->files.size() == 3);
  CHECK(segments->files[0].key == "x");
  CHECK(segments->files[0].path == "a/one.wav");
  CHECK(segments->files[0].part.begin == 1.5);
  CHECK(segments->files[1].key == "first");
  CHECK(segments->files[1].part.end == 0.1);
  CHECK(segments->files[2].key == "late");
  CHECK(std::isinf(segments->files[2].part.end));
  CHECK(segments->files_without == 1);
  CHECK(segments->unmatched.empty());
}

TEST_CASE("storage: columns between TABs may hold blanks") {
  const auto segments = segments_of("a key\ta/one\t0\t1\n");
  REQUIRE(segments);
  CHECK(segments->files.front().key == "a key");
}

TEST_CASE("storage: recordings of no file are counted, and those of several of one name") {
  const auto segments = segments_of("x two 0 1\ny three 0 1\nz three 1 2\nw one 0 1\n");
  REQUIRE(segments);
  CHECK(segments->files.size() == 1);
  CHECK(contains(segments->unmatched, "2 recordings of segments "));
  CHECK(contains(segments->unmatched, "such as \"two\""));
  CHECK(contains(segments_refusal("x two 0 1\n"), "are no file, or several of one name"));
}

TEST_CASE("storage: a table of segments that is none is refused by line") {
  const std::string form =
      " is not key, recording, begin and end in seconds, with 0 <= begin < end, or an end of -1";
  for (const char* line :
       {"k", "k one", "k one 0", "k one 0 1 2", "k one 1 1", "k one 2 1", "k one -1 1",
        "k one 0 -2", "k one nan 1", "k one 0 nan", "k one inf inf", "k one 0 1s", "k one 0,5 1",
        "k one inf -1", "k\tone\t0", "k one 0x1 2"}) {
    CAPTURE(line);
    CHECK(segments_refusal(std::string("j one 0 1\n") + line + "\n") == "line 2" + form);
  }
  CHECK(segments_refusal("k one 0 1\nk two 0 1\n") == "line 2: key \"k\" was there before");
  CHECK(segments_refusal("") == "no segment in it");
  CHECK_FALSE(read_segments("/nowhere/segments", recordings()));
}

TEST_CASE("storage: segments become the sequences, as features and as sound") {
  Place place;
  write_file(place.in("long.wav"), wav(tone(80000)));
  write_file(place.in("other.wav"), wav(tone(8000, 2)));
  write_file(place.folder / "segments", "b long 1 2.5\na long 5 -1\nc other 0 0.25\n");
  const auto list = find_files(place.folder / "in", audio_extensions());
  const auto segments = read_segments(place.folder / "segments", list->files);
  REQUIRE(segments);
  const auto source = sound_source({}, segments->files);
  const auto report = place.take({}, *source, segments->files);
  REQUIRE(report);
  CHECK(report->figures.added == 3);
  CHECK(report->figures.seconds == doctest::Approx(1.5 + 5 + 0.25));
  CHECK(place.keys() == Keys{"b", "a", "c"});
  const auto snapshot = place.snapshot();
  const auto record = snapshot->record(Ordinal{0});
  REQUIRE(record);
  const auto whole = tone(80000);
  const auto bytes = std::as_bytes(std::span(whole).subspan(8000, 12000));
  CHECK(std::ranges::equal(record->field(0).bytes, bytes));
}
