#include "storage/ingest/transcripts.h"

#include <doctest/doctest.h>

#include "storage/ingest/annotations.h"
#include "storage/ingest/ingest_source.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Result<TextTable> table_of(const std::string& bytes,
                           TranscriptFormat format = TranscriptFormat::detect,
                           const TextColumns& columns = {}) {
  const TemporaryFolder folder;
  write_file(folder / "texts", bytes);
  return read_transcripts(folder / "texts", format, columns);
}

Texts read(const std::string& bytes, const TextColumns& columns = {}) {
  const auto table = table_of(bytes, TranscriptFormat::detect, columns);
  REQUIRE_MESSAGE(table, table.error().message);
  return table->texts;
}

/// The note on the columns of a table.
std::string note(const std::string& bytes, const TextColumns& columns = {}) {
  const auto table = table_of(bytes, TranscriptFormat::detect, columns);
  REQUIRE_MESSAGE(table, table.error().message);
  const std::size_t at = table->note.find("texts: ");
  return at == std::string::npos ? table->note : table->note.substr(at + 7);
}

std::string refusal(const std::string& bytes, TranscriptFormat format = TranscriptFormat::detect,
                    const TextColumns& columns = {}) {
  const auto texts = table_of(bytes, format, columns);
  REQUIRE_FALSE(texts);
  const std::string& message = texts.error().message;
  return message.substr(message.find("texts: ") + 7);
}

/// Annotations for files of these keys, with these transcripts.
class Annotated {
 public:
  Annotated(const std::string& table, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) files_.push_back({key, ""});
    const TemporaryFolder folder;
    write_file(folder / "texts", table);
    AnnotationOptions options;
    options.transcripts = folder / "texts";
    annotations_ = Annotations::create(options, files_);
    REQUIRE_MESSAGE(annotations_, annotations_.error().message);
  }

  /// The text for a key, or why there is none.
  std::string operator[](const std::string& key) const {
    std::vector<FieldValue> values;
    if (auto known = annotations_->append_values({key, {}}, values); !known)
      return known.error().message;
    return {reinterpret_cast<const char*>(values[0].bytes.data()), values[0].length};
  }
  const Annotations& all() const { return *annotations_; }

 private:
  std::vector<SourceFile> files_;
  Result<Annotations> annotations_{Error{}};
};

}  // namespace

TEST_CASE("storage: byte order marks and line ends of all systems are no part of keys and texts") {
  const Texts wanted = {{"a/1", "one"}, {"a/2", "two"}};
  CHECK(read("\xEF\xBB\xBF"
             "a/1\tone\r\na/2\ttwo\r\n") == wanted);
  CHECK(read("a/1\tone\ra/2\ttwo\r") == wanted);
  CHECK(read("\xEF\xBB\xBF"
             "a/1 one\r\ra/2 two") == wanted);
  CHECK(read("a/1 one \t \na/2|x two\t\n") == Texts{{"a/1", "one"}, {"a/2|x", "two"}});
  CHECK(refusal(std::string("\xFF\xFE"
                            "a\0",
                            4)) == "it is UTF-16; allowed: UTF-8 (iconv -f UTF-16 -t UTF-8)");
}

TEST_CASE("storage: all lines of transcripts decide what divides them, in whatever order") {
  CHECK(read("a b|c\td e\n") == Texts{{"a b|c", "d e"}});
  CHECK(read("LJ1|Raw 1|raw one\nLJ2|Raw 2|\n") == Texts{{"LJ1", "raw one"}, {"LJ2", ""}});
  CHECK(read("LJ1|raw\n") == Texts{{"LJ1", "raw"}});
  const auto both = [](const std::string& one, const std::string& other, const Texts& wanted) {
    CAPTURE(one);
    CHECK(read(one + "\n" + other + "\n") == wanted);
    CHECK(read(other + "\n" + one + "\n") == wanted);
  };
  both("a|HELLO\tYOU", "b|WORLD", {{"a", "HELLO\tYOU"}, {"b", "WORLD"}});
  both("utt1 a|b c", "utt2", {{"utt1", "a|b c"}, {"utt2", ""}});
  both("a\tone", "b two", {{"a", "one"}, {"b", "two"}});
  both("my file|HELLO", "b|X", {{"my file", "HELLO"}, {"b", "X"}});
  CHECK(refusal("alone\n") == "line 1 is not key TAB text, key|text or key blank text");
  CHECK(refusal("a\tone\nb two\n", TranscriptFormat::tab) == "line 2 is not key TAB text");
  CHECK(refusal("a one\n", TranscriptFormat::ljspeech) == "line 1 is not key|text");
  CHECK(refusal("a one\nb two\na three\n") == "line 3: key \"a\" was there before");
}

TEST_CASE("storage: the columns of transcripts are told, and may be named") {
  CHECK(note("a|one\nb|two\n").empty());
  CHECK(note("a one two\n").empty());
  CHECK(note("a|one|ann\nb|two\n") == "2 to 3 columns; column 1 is the key, the last one the text");
  CHECK(note("a\tone\tann\n") ==
        "3 columns; column 1 is the key, all others together are the text");
  CHECK(read("a|one|ann\nb|two|bob\n", {"", "2"}) == Texts{{"a", "one"}, {"b", "two"}});
  CHECK(note("a|one|ann\n", {"1", "2"}) == "3 columns; column 1 is the key, 2 the text");
  CHECK(read("speaker|file|said\nann|a.wav|one\n", {"file", "said"}) == Texts{{"a.wav", "one"}});
  const std::string voices = "client_id\tpath\tsentence\tage\n9f\tx_1.mp3\tHello there\t\n";
  CHECK(read(voices) == Texts{{"x_1.mp3", "Hello there"}});
  CHECK(note(voices) == "4 columns; column 2 (path) is the key, 3 (sentence) the text");
  CHECK(read(voices, {"client_id", "age"}) == Texts{{"9f", ""}});
  CHECK(refusal(voices, TranscriptFormat::detect, {"file", "sentence"}) ==
        "no column \"file\" in line 1, which has client_id, path, sentence, age");
  CHECK(refusal("a|one\nb|two|x\n", TranscriptFormat::detect, {"1", "3"}) ==
        "line 1 has 2 columns; key and text are columns 1 and 3, and a key is not empty");
  CHECK(refusal("a one\n", TranscriptFormat::detect, {"1", "2"}) ==
        "columns were named, but not all lines have a TAB, or a |, between them");
}

TEST_CASE("storage: LibriSpeech's transcripts are found below a folder") {
  const TemporaryFolder folder;
  write_file(folder / "in" / "84" / "1" / "84-1.trans.txt", "84-1-0 ONE TWO\n84-1-1 THREE\n");
  write_file(folder / "in" / "85" / "2" / "85-2.trans.txt", "85-2-0 FOUR\n");
  write_file(folder / "in" / "SPEAKERS.TXT", "; no transcript\n");
  const auto texts = read_transcripts(folder / "in", TranscriptFormat::librispeech);
  REQUIRE(texts);
  CHECK(texts->texts.size() == 3);
  CHECK(texts->texts.at("84-1-0") == "ONE TWO");
  // A folder is of no other kind.
  const auto found = read_transcripts(folder / "in", TranscriptFormat::detect);
  REQUIRE(found);
  CHECK(found->texts == texts->texts);
  CHECK_FALSE(read_transcripts(folder / "in", TranscriptFormat::tab));
  write_file(folder / "empty" / "a.txt", "");
  CHECK(read_transcripts(folder / "empty", TranscriptFormat::detect)
            .error()
            .message.find("a folder with no .trans.txt file below it; allowed: ") !=
        std::string::npos);
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
  CHECK(annotations->append_values({"a/1", {}}, values));
  CHECK(annotations->append_values({"a/2", {}}, values));
  REQUIRE(values.size() == 2);
  CHECK(values[1].length == 5);
  CHECK(annotations->append_values({"a/3", {}}, values).error().message ==
        "key \"a/3\": no transcript");
  REQUIRE(annotations->unmatched().size() == 1);
  CHECK(annotations->unmatched()[0].find("2 of 4 keys of ") == 0);
  CHECK(annotations->unmatched()[0].find("such as \"3\"") != std::string::npos);
}

TEST_CASE("storage: lists that name the file are looked up without its extension") {
  const Annotated named("a.wav HELLO\nsub/b.FLAC THERE\nc.d E\n", {"a", "x/sub/b", "c.d"});
  CHECK(named["a"] == "HELLO");
  CHECK(named["x/sub/b"] == "THERE");
  CHECK(named["c.d"] == "E");
  CHECK(named.all().unmatched().empty());
  for (const std::string_view ending : audio_extensions()) {
    CAPTURE(ending);
    CHECK(Annotated("a" + std::string(ending) + " HELLO\n", {"a"})["a"] == "HELLO");
  }
  const Annotated below("wavs/a.wav|HELLO\n/data/wavs/b.wav|THERE\n", {"a", "wavs/b"});
  CHECK(below["a"] == "HELLO");
  CHECK(below["wavs/b"] == "THERE");
  // Both fit, and one of them at least is of another file.
  const Annotated two("1/a.wav ONE\n2/a.wav TWO\n", {"a"});
  CHECK(two["a"] == "key \"a\": no transcript");
  CHECK(two.all().unmatched().size() == 1);
  const Annotated whole("a.wav ONE\nx/a TWO\n", {"a", "x/a"});
  CHECK(whole["a"] == "ONE");
  CHECK(whole["x/a"] == "TWO");
  // A key that is there as it stands goes before all.
  const Annotated exact("a.wav EXACT\na OTHER\n", {"a.wav", "a"});
  CHECK(exact["a.wav"] == "EXACT");
  CHECK(exact["a"] == "OTHER");
}

TEST_CASE("storage: a name in another of Unicode's normal forms is told") {
  const Annotated composed("caf\xC3\xA9 one\nanother two\n", {"in/cafe\xCC\x81"});
  CHECK(composed["in/cafe\xCC\x81"].find(
            "no transcript; \"caf\xC3\xA9\" is there, which may be the "
            "same name in another Unicode normal form") != std::string::npos);
  const Annotated voiced("\xE3\x81\x8B\xE3\x82\x99.wav one\n", {"\xE3\x81\x8C"});
  CHECK(voiced["\xE3\x81\x8C"].find("normal form") != std::string::npos);
  const Annotated others("\xC3\xA9 one\n", {"\xC3\xA8"});
  CHECK(others["\xC3\xA8"].find("normal form") == std::string::npos);
}
