#include "storage/ingest/transcripts.h"

#include <doctest/doctest.h>

#include "storage/ingest/annotations.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Result<Texts> read(const std::string& bytes, TranscriptFormat format = TranscriptFormat::detect) {
  const TemporaryFolder folder;
  write_file(folder / "texts", bytes);
  return read_transcripts(folder / "texts", format);
}

std::string refusal(const std::string& bytes, TranscriptFormat format = TranscriptFormat::detect) {
  const auto texts = read(bytes, format);
  REQUIRE_FALSE(texts);
  const std::string& message = texts.error().message;
  return message.substr(message.find("texts: ") + 7);
}

}  // namespace

TEST_CASE("storage: a byte order mark and CR are no part of keys and texts") {
  const auto texts = read(
      "\xEF\xBB\xBF"
      "a/1\tone\r\na/2\ttwo\r\n");
  REQUIRE(texts);
  CHECK(*texts == Texts{{"a/1", "one"}, {"a/2", "two"}});
}

TEST_CASE("storage: what divides the first line of transcripts divides all") {
  CHECK(*read("a b|c\td e\n") == Texts{{"a b|c", "d e"}});
  CHECK(*read("LJ1|Raw 1|raw one\nLJ2|Raw 2|\n") == Texts{{"LJ1", "raw one"}, {"LJ2", ""}});
  CHECK(*read("LJ1|raw\n") == Texts{{"LJ1", "raw"}});
  CHECK(*read("utt1 a|b c\nutt2\n") == Texts{{"utt1", "a|b c"}, {"utt2", ""}});
  CHECK(refusal("alone\n") == "line 1 is not key TAB text, key|text or key blank text");
  CHECK(refusal("a\tone\nb two\n") == "line 2 is not key TAB text");
  CHECK(refusal("a one\n", TranscriptFormat::tab) == "line 1 is not key TAB text");
  CHECK(refusal("a one\n", TranscriptFormat::ljspeech) == "line 1 is not key|text");
  CHECK(refusal("a one\nb two\na three\n") == "line 3: key \"a\" was there before");
}

TEST_CASE("storage: LibriSpeech's transcripts are found below a folder") {
  const TemporaryFolder folder;
  write_file(folder / "in" / "84" / "1" / "84-1.trans.txt", "84-1-0 ONE TWO\n84-1-1 THREE\n");
  write_file(folder / "in" / "85" / "2" / "85-2.trans.txt", "85-2-0 FOUR\n");
  write_file(folder / "in" / "SPEAKERS.TXT", "; no transcript\n");
  const auto texts = read_transcripts(folder / "in", TranscriptFormat::librispeech);
  REQUIRE(texts);
  CHECK(texts->size() == 3);
  CHECK(texts->at("84-1-0") == "ONE TWO");
  CHECK_FALSE(read_transcripts(folder / "in", TranscriptFormat::detect));
}

TEST_CASE("storage: a file is found by its key, or by its short name when that is its alone") {
  const TemporaryFolder folder;
  write_file(folder / "texts", "a/1\twhole\n2\tshort\n3\ttwice\n4\tof no file\n");
  const std::vector<SourceFile> files = {{"a/1", ""}, {"a/2", ""}, {"a/3", ""}, {"b/3", ""}};
  AnnotationOptions options;
  options.transcripts = folder / "texts";
  const auto annotations = Annotations::create(options, files);
  REQUIRE(annotations);
  std::vector<FieldValue> values;
  CHECK(annotations->append_values("a/1", values));
  CHECK(annotations->append_values("a/2", values));
  REQUIRE(values.size() == 2);
  CHECK(values[1].length == 5);
  CHECK(annotations->append_values("a/3", values).error().message == "key \"a/3\": no transcript");
  REQUIRE(annotations->unmatched().size() == 1);
  CHECK(annotations->unmatched()[0].find("2 of 4 keys of ") == 0);
  CHECK(annotations->unmatched()[0].find("such as \"3\"") != std::string::npos);
}
