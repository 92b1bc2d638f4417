#include "storage/ingest/manifest.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>

#include "storage/ingest/annotations.h"
#include "storage/ingest/ingest_source.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;
namespace json = boost::json;

namespace {

std::string nemo(const std::string& name) { return BATCHWRIGHT_TEST_DATA "/nemo/" + name; }

Result<Manifest> manifest_of(const std::string& text, const std::string& key = {},
                             const std::vector<std::string>& labels = {}) {
  const TemporaryFolder folder;
  write_file(folder / "m.jsonl", text);
  return read_manifest(folder / "m.jsonl", key, labels);
}

std::string refusal_of(const Result<Manifest>& manifest) {
  REQUIRE_FALSE(manifest);
  CHECK(manifest.error().code == ErrorCode::invalid_argument);
  const std::string& message = manifest.error().message;
  return message.substr(message.find(".jsonl: ") + 8);
}

std::string sha256_of(std::span<const std::byte> bytes) {
  const TemporaryFolder folder;
  std::ofstream(folder / "samples", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return run({"/usr/bin/sha256sum", folder / "samples"}).out.substr(0, 64);
}

}  // namespace

TEST_CASE("storage: a manifest of NeMo's gives what NeMo's own reader gives, to the sample") {
  std::ifstream file(nemo("manifest.expected.json"));
  const json::value expected = json::parse(
      std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()));
  const json::object& lists = expected.at("lists").as_object();
  const std::vector<std::string> labels = {"lang", "speaker"};
  for (const char* name : {"manifest.json", "manifest_ascii.json"}) {
    CAPTURE(name);
    const auto manifest = read_manifest(nemo(name), "", labels);
    REQUIRE_MESSAGE(manifest, manifest.error().message);
    REQUIRE(manifest->files.size() == 4);
    const auto source = sound_source({}, manifest->files);
    for (std::size_t i = 0; i < 4; ++i) {
      const SourceFile& one = manifest->files[i];
      CHECK(one.key == expected.at("keys").at(i).as_string());
      CHECK(manifest->texts->at(one.key) == lists.at("text").at(i).as_string());
      for (const std::string& label : labels) {
        const json::value& said = lists.at(label).at(i);
        const Texts& names = manifest->labels.at(label);
        CHECK(names.contains(one.key) == !said.is_null());
        if (!said.is_null()) CHECK(names.at(one.key) == said.as_string());
      }
      const auto loaded = source->load(one);
      REQUIRE_MESSAGE(loaded, loaded.error().message);
      CHECK(loaded->fields[0].length == lists.at("num_samples").at(i).as_int64());
      CHECK(sha256_of(loaded->fields[0].bytes) ==
            lists.at("sha256_of_int16_samples").at(i).as_string());
    }
  }
}

TEST_CASE("storage: a manifest may spell its members in other ways, and lack some") {
  const auto manifest = read_manifest(nemo("spellings.json"), "", {});
  REQUIRE_MESSAGE(manifest, manifest.error().message);
  REQUIRE(manifest->files.size() == 3);
  CHECK(*manifest->texts == Texts{{"0", "one"}, {"1", ""}, {"2", ""}});
  CHECK(manifest->files[1].key == "2");  // parts of a file stand together
  CHECK(manifest->files[1].part.end == 0.1);
  const auto whole = read_manifest(nemo("bad_no_duration.json"), "", {});
  REQUIRE(whole);
  CHECK(whole->files[0].part.whole());
  const auto without = manifest_of(R"({"path": "/a.wav", "id": 7})"
                                   "\r\n"
                                   R"({"audio":"b","id":"x"})");
  REQUIRE(without);
  CHECK_FALSE(without->texts);
  CHECK(without->files[0].key == "7");
  CHECK(without->files[0].path == "/a.wav");
  CHECK(without->files[1].key == "x");
  const auto keyed = manifest_of(R"({"path": "a", "utt": "u1", "id": 7})", "utt");
  REQUIRE(keyed);
  CHECK(keyed->files[0].key == "u1");
}

TEST_CASE("storage: parts of a file stand together, and keys that are lines' numbers are told") {
  const auto manifest = manifest_of(
      "{\"path\": \"b\", \"offset\": 2}\n{\"path\": \"a\"}\n{\"path\": \"b\", \"id\": \"x\"}\n");
  REQUIRE(manifest);
  CHECK(manifest->numbered);
  CHECK(manifest->files[0].key == "0");
  CHECK(manifest->files[1].key == "x");
  CHECK(manifest->files[2].key == "1");
  CHECK_FALSE(manifest_of(R"({"path": "a", "id": "x"})")->numbered);
}

TEST_CASE("storage: a manifest that is none is refused by its line") {
  CHECK(refusal_of(manifest_of("")) == "no line in it");
  CHECK(refusal_of(manifest_of("\n  \n\t\n")) == "no line in it");
  CHECK(refusal_of(manifest_of("{\"path\": \"a\"}\n[1]\n")) ==
        "line 2: found [1], allowed: an object");
  CHECK(
      refusal_of(manifest_of("{\"path\": \"a\", \"id\": 1}\n\n{\"path\": \"b\", \"id\": \"1\"}")) ==
      "line 3: key \"1\" is that of line 1, too");
  const auto line = [](const std::string& members) {
    return refusal_of(manifest_of("{\"path\": \"a\", " + members + "}"));
  };
  CHECK(line("\"offset\": -0.5") == "line 1: offset: found -5E-1, allowed: seconds, 0 and up");
  CHECK(line("\"offset\": \"1\"") == "line 1: offset: found \"1\", allowed: seconds, 0 and up");
  CHECK(line("\"duration\": 0") == "line 1: duration: found 0, allowed: above 0");
  CHECK(line("\"duration\": 1e999").starts_with("line 1: duration: found "));
  CHECK(line("\"text\": 3") == "line 1: text: found 3, allowed: a text");
  CHECK(line("\"id\": 1.5") == "line 1: key: found 1.5E0, allowed: a text or a whole number");
  CHECK(line("\"id\": \"\"") == "line 1: key: found \"\", allowed: a text or a whole number");
  CHECK(refusal_of(manifest_of(R"({"path": "a"})", "utt")) == "line 1: no \"utt\" for the key");
  CHECK(refusal_of(manifest_of(R"({"path": "a"})", "", {"lang"})) == "no line has \"lang\"");
  CHECK(refusal_of(manifest_of(R"({"path": "a", "lang": 1})", "", {"lang"})) ==
        "line 1: lang: found 1, allowed: a text");
  const auto bad = [](const char* name) {
    const auto manifest = read_manifest(nemo(name), "", {});
    REQUIRE_FALSE(manifest);
    return manifest.error().message;
  };
  CHECK(bad("bad_json.json").find("bad_json.json: line 2: it is not JSON: ") != std::string::npos);
  CHECK(bad("bad_no_audio.json").find("line 1: it names no file; allowed: ") != std::string::npos);
}

TEST_CASE("storage: every cut of a manifest is a manifest of fewer lines, or refused") {
  const std::string text = R"({"path": "a", "text": "x"})"
                           "\n"
                           R"({"path": "b", "duration": 1})"
                           "\n";
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    CAPTURE(bytes);
    const auto cut = manifest_of(text.substr(0, bytes));
    if (cut) CHECK(cut->files.size() == (bytes + 1 >= text.size() ? 2 : 1));
  }
}
