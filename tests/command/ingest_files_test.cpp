#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A folder of one file of sound in each of two folders, and the path of a dataset.
struct Sounds {
  TemporaryFolder folder;
  std::string in() const { return folder / "in"; }
  std::string out() const { return folder / "out"; }

  Sounds() {
    write_file(folder / "in" / "en" / "000.wav", wav(tone(8000, 0)));
    write_file(folder / "in" / "it" / "001.wav", wav(tone(8000, 1)));
  }
  Finished ingest(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        program("batchwright"), "ingest", "audio", in(), "--into", out()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

}  // namespace

TEST_CASE(
    "command: links that lead nowhere are errors of their files, and what is left out is told") {
  const Sounds place;
  std::filesystem::create_symlink("/nowhere/2.wav", place.folder / "in" / "en" / "2.wav");
  std::filesystem::create_directory_symlink(place.folder / "in" / "it", place.folder / "in" / "fr");
  write_file(place.folder / "in" / "._000.wav", "x");
  const auto stopped = place.ingest({"--label-from-folder"});
  CHECK(stopped.code == 1);
  CHECK(contains(stopped.err, "in/en/2.wav: a link that leads nowhere (to /nowhere/2.wav)"));
  const auto skipped = place.ingest({"--label-from-folder", "--resume", "--on-error", "skip"});
  CHECK(skipped.code == 0);
  CHECK(contains(skipped.out, "skipped 1 files:\n"));
  CHECK(contains(skipped.out,
                 "left out: 1 whose names begin with a dot, 1 paths to folders that are "
                 "read by another one (" +
                     (place.folder / "in" / "fr").string() + ")\n"));
  const auto inspected = run({program("batchwright"), "inspect", place.out(), "--json"});
  // A link to the folder of another label gives no label of its own.
  CHECK(contains(inspected.out, "\"categories\":[\"en\",\"it\"]"));
}

TEST_CASE("command: lists that name the file, and columns by name") {
  const Sounds place;
  write_file(place.folder / "texts",
             "client_id\tpath\tsentence\nx\t000.wav\tone\ny\t001.wav\ttwo\n");
  const auto finished = place.ingest({"--transcripts", place.folder / "texts"});
  CHECK(finished.code == 0);
  CHECK(contains(finished.out, "3 columns; column 2 (path) is the key, 3 (sentence) the text\n"));
  const auto named =
      place.ingest({"--transcripts", place.folder / "texts", "--transcript-key", "path",
                    "--transcript-text", "client_id", "--on-error", "skip", "--json"});
  CHECK(contains(named.out, "column 2 (path) is the key, 1 (client_id) the text"));
}

TEST_CASE("command: an option is not taken for another one's value, nor for a path") {
  const Sounds place;
  for (const char* word : {"--help", "--no-such-option"}) {
    CAPTURE(word);
    const auto finished =
        run({program("batchwright"), "ingest", "audio", place.in(), "--into", word});
    CHECK(finished.code == 2);
    CHECK(contains(finished.err, std::string("found ") + word + ", which is no value"));
  }
  CHECK(run({program("batchwright"), "verify", "--no-such-option"}).code == 2);
  CHECK(run({program("batchwright"), "ingest", "npz", "a.npz", "--no-such-option"}).code == 2);
}

TEST_CASE("command: a manifest of JSON lines becomes a dataset with texts and labels") {
  const TemporaryFolder folder;
  const std::string manifest = BATCHWRIGHT_TEST_DATA "/nemo/manifest.json";
  const auto finished =
      run({program("batchwright"), "ingest", "jsonl", manifest, "--into", folder / "out", "--store",
           "pcm", "--label", "lang", "--on-error", "skip", "--json"});
  CHECK(finished.code == 0);
  CHECK(contains(finished.out, "\"added\":2"));  // two lines have no lang
  const auto inspected = run({program("batchwright"), "inspect", folder / "out", "--json"});
  CHECK(contains(inspected.out, "\"categories\":[\"en\"]"));
  CHECK(contains(inspected.out, "\"text\""));
  CHECK(run({program("batchwright"), "verify", folder / "out"}).code == 0);
  const auto encoded = run({program("batchwright"), "ingest", "jsonl", manifest, "--into",
                            folder / "encoded", "--store", "encoded"});
  CHECK(encoded.code == 2);
  const auto resumed = run({program("batchwright"), "ingest", "jsonl", manifest, "--into",
                            folder / "out", "--store", "pcm", "--label", "lang", "--resume"});
  CHECK(resumed.code == 2);
  CHECK(contains(resumed.err, "--key MEMBER"));
  const auto excluded = run({program("batchwright"), "ingest", "jsonl", manifest, "--into",
                             folder / "few", "--store", "pcm", "--exclude", "hello-world.wav"});
  CHECK(excluded.code == 0);
  CHECK(contains(excluded.out, "left out: 2 lines by --exclude"));
}
