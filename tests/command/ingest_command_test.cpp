#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <csignal>
#include <fstream>
#include <sstream>

#include "storage/features/frontend/front_end.h"
#include "tests/integration/daemon_process.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace json = boost::json;

/// A folder of audio and the path of a dataset.
struct Place {
  TemporaryFolder folder;
  std::string in() const { return folder / "in"; }
  std::string out() const { return folder / "out"; }

  void write_tones(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = std::to_string(1000 + i).substr(1) + ".wav";
      write_file(folder / "in" / (i % 2 == 0 ? "en" : "it") / name, wav(tone(8000, i)));
    }
  }
  Finished ingest(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        program("batchwright"), "ingest", "audio", in(), "--into", out()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

json::value object_in(const Finished& finished) {
  CAPTURE(finished.out);
  CHECK(std::count(finished.out.begin(), finished.out.end(), '\n') == 1);
  json::error_code failed;
  const json::value value = json::parse(finished.out, failed);
  REQUIRE_FALSE(failed);
  return value;
}

}  // namespace

TEST_CASE("command: ingest prints its figures as one object") {
  const Place place;
  place.write_tones(4);
  const auto finished = place.ingest({"--json", "--label-from-folder"});
  CHECK(finished.code == 0);
  const json::value figures = object_in(finished);
  CHECK(figures.at("added").as_int64() == 4);
  CHECK(figures.at("frames").as_int64() == 4 * 98);
  CHECK(figures.at("audio_seconds").as_double() == doctest::Approx(4));
  CHECK(figures.at("error").is_null());
}

TEST_CASE("command: keys are paths, or names of files where that is chosen") {
  const Place place;
  place.write_tones(4);
  const std::string label = place.folder / "label.tsv";
  write_file(label, "000 a\n001 b\n002 a\n003 b\n");
  CHECK(place.ingest({"--key", "basename", "--label-table", "kind=" + label}).code == 0);
  const auto again = place.ingest({"--key", "basename", "--label-table", "kind=" + label});
  CHECK(contains(again.err, "key \"000\" is already in dataset"));
  CHECK(place.ingest({"--key", "basename", "--label-from-folder"}).code == 2);
}

TEST_CASE("command: sound is stored as it is, and refuses what decides nothing") {
  const Place place;
  place.write_tones(4);
  CHECK(place.ingest({"--store", "pcm", "--hop-ms", "5"})
            .err.find("--hop-ms: goes with --store features only") != std::string::npos);
  CHECK(place.ingest({"--store", "pcm", "--sample-rate", "8000"}).code == 2);
  CHECK(place.ingest({"--samples", "int16"}).err.find("goes with --store pcm only") !=
        std::string::npos);
  CHECK(place.ingest({"--store", "encoded"}).code == 0);
  const auto shown = object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
  CHECK(shown.at("lengths").at("median").as_int64() == 8000);
  CHECK(place.ingest({"--store", "pcm"}).code == 2);
}

TEST_CASE("command: inspect prints what was ingested") {
  const Place place;
  place.write_tones(4);
  REQUIRE(place.ingest({"--label-from-folder"}).code == 0);
  const json::value shown =
      object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
  CHECK(shown.at("sequences").as_int64() == 4);
  CHECK(shown.at("lengths").at("median").as_int64() == 98);
  CHECK(shown.at("hours").as_double() == doctest::Approx(4 * 0.98 / 3600));
  CHECK(shown.at("fields").at(1).at("categories").at(1).as_string() == "it");
  CHECK(shown.at("settings").at("source_folder").as_string() == "in");
  CHECK(shown.at("settings").at("sample_rate_hz").as_string() == "8000");
  const auto text = run({program("batchwright"), "inspect", place.out()});
  CHECK(contains(text.out, "sequences   4\n"));
}

TEST_CASE("command: a file that stops the ingest is named, exit code 1") {
  const Place place;
  place.write_tones(4);
  write_file(place.folder / "in" / "it" / "000.wav", "");
  const auto stopped = place.ingest();
  CHECK(stopped.code == 1);
  CHECK(contains(stopped.err, "stopped: " + place.in() + "/it/000.wav: the file is empty"));
  const json::value skipped = object_in(place.ingest({"--json", "--resume", "--on-error", "skip"}));
  CHECK(skipped.at("present").as_int64() == 2);
  CHECK(skipped.at("added").as_int64() == 2);
  CHECK(skipped.at("skipped_files").as_array().size() == 1);
}

TEST_CASE("command: wrong calls and wrong input have exit code 2 and a reason") {
  const Place place;
  place.write_tones(1);
  const auto code_of = [](const Finished& finished, const std::string& reason) {
    CAPTURE(finished.err);
    CHECK(contains(finished.err, reason));
    return finished.code;
  };
  const std::string batchwright = program("batchwright");
  CHECK(code_of(run({batchwright}), "subcommand") == 2);
  CHECK(code_of(run({batchwright, "ingest", "audio", "/nowhere", "--into", place.out()}),
                "/nowhere: No such file") == 2);
  CHECK(code_of(place.ingest({"--window-ms", "0"}), "window of 0 ms") == 2);
  CHECK(code_of(place.ingest({"--fmax", "5000"}), "fmax 5000 Hz; at 8000 Hz") == 2);
  CHECK(code_of(place.ingest({"--on-error", "retry"}), "--on-error") == 2);
  CHECK(code_of(place.ingest({"--transcripts", "/nowhere"}), "transcripts /nowhere") == 2);
  CHECK(code_of(run({batchwright, "inspect", "/nowhere"}), "/nowhere") == 2);
  CHECK(code_of(run({batchwright, "verify", "/nowhere"}), "/nowhere") == 2);
  CHECK_FALSE(std::filesystem::exists(place.out()));
}

TEST_CASE("command: verify names a broken record and has exit code 1") {
  const Place place;
  place.write_tones(3);
  REQUIRE(place.ingest().code == 0);
  const std::vector<std::string> verify = {program("batchwright"), "verify", place.out(), "--json"};
  CHECK(object_in(run(verify)).at("sound").as_bool());
  const auto sound = run({program("batchwright"), "verify", place.out()});
  CHECK((sound.code == 0 && contains(sound.out, "intact")));
  const auto file = place.folder / "out" / "data.mdb";
  std::string bytes = read_file(file);
  // Sequence 1's features are known, so its record is found by them and one bit turned.
  const auto audio = tone(8000, 1);
  std::vector<float> samples;
  for (const std::int16_t sample : audio) samples.push_back(static_cast<float>(sample) / 32768);
  const auto features = FrontEnd::create({}, 8000)->compute(samples);
  const std::string_view start(reinterpret_cast<const char*>(features.data()), 160);
  const std::size_t at = bytes.find(start);
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const auto broken = run(verify);
  CHECK(broken.code == 1);
  const json::value found = object_in(broken);
  REQUIRE(found.at("broken").as_array().size() == 1);
  CHECK(found.at("broken").at(0).at("key").as_string() == "it/001");
}

TEST_CASE("command: an interrupted ingest says so, and resume completes it") {
  const Place place;
  place.write_tones(300);
  // An FFT of so many points makes a frame take long enough to be interrupted surely.
  Process ingest({program("batchwright"), "ingest", "audio", place.in(), "--into", place.out(),
                  "--json", "--fft-size", "262144", "--threads", "1"});
  REQUIRE(eventually([&place] { return std::filesystem::exists(place.out()); }));
  ingest.signal(SIGINT);
  REQUIRE(ingest.wait(60) == 1);
  CHECK(contains(ingest.err(), "are committed; --resume goes on after them"));
  const json::value figures = json::parse(ingest.out());
  CHECK(figures.at("interrupted").as_bool());
  CHECK(figures.at("added").as_int64() < 300);
  const auto shown = object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
  CHECK(shown.at("sequences") == figures.at("added"));
}

TEST_CASE("command: .npy folders are ingested") {
  const TemporaryFolder folder;
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  text.resize(117, ' ');
  write_file(folder / "in" / "1.npy",
             std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" + std::string(24, 'x'));
  const auto finished = run(
      {program("batchwright"), "ingest", "npy", folder / "in", "--into", folder / "out", "--json"});
  CHECK(finished.code == 0);
  CHECK(object_in(finished).at("frames").as_int64() == 2);
}

TEST_CASE("command: .npz files are ingested, their arrays as fields") {
  const TemporaryFolder folder;
  const auto finished =
      run({program("batchwright"), "ingest", "npz", BATCHWRIGHT_TEST_DATA "/npz/stored.npz",
           BATCHWRIGHT_TEST_DATA "/npz/deflated.npz", "--into", folder / "out", "--json", "--cast",
           "float16", "--cast", "labels=uint8", "--cast", "speaker=int32", "--kind",
           "labels=independent"});
  CAPTURE(finished.err);
  CHECK(finished.code == 0);
  CHECK(object_in(finished).at("added").as_int64() == 2);
  const json::value shown =
      object_in(run({program("batchwright"), "inspect", folder / "out", "--json"}));
  const json::array& fields = shown.at("fields").as_array();
  CHECK(fields.at(0).at("dtype").as_string() == "float16");
  CHECK(fields.at(1).at("kind").as_string() == "independent");
  CHECK(fields.at(1).at("dtype").as_string() == "uint8");
  CHECK(fields.at(2).at("kind").as_string() == "scalar");
}

TEST_CASE("command: plan refuses datasets that no feed could serve together") {
  const TemporaryFolder folder;
  const std::string a = folder / "a";
  const std::string b = folder / "b";
  const auto ingested = [](const std::string& into, const std::string& dtype) {
    return run({program("batchwright"), "ingest", "npz", BATCHWRIGHT_TEST_DATA "/npz/stored.npz",
                "--into", into, "--cast", dtype, "--cast", "labels=uint8", "--cast",
                "speaker=int32", "--kind", "labels=independent"})
               .code == 0;
  };
  REQUIRE(ingested(a, "float16"));
  REQUIRE(ingested(b, "float32"));
  const auto finished = run({program("batchwright"), "plan", "--dataset", a, "--dataset", b});
  CHECK(finished.code == 2);
  CHECK_MESSAGE(contains(finished.err, b + " differs from " + a + ": field "), finished.err);
  CHECK(run({program("batchwright"), "plan", "--dataset", a, "--size", "1"}).code == 0);
}

TEST_CASE("command: a Kaldi data folder is ingested with its texts and speakers") {
  const TemporaryFolder folder;
  const std::string data = BATCHWRIGHT_TEST_DATA "/kaldi/";
  write_file(folder / "data" / "text", read_file(data + "text"));
  write_file(folder / "data" / "utt2spk", read_file(data + "utt2spk"));
  std::string scp = read_file(data + "fm.scp");
  for (std::size_t at = 0; (at = scp.find(" fm.ark", at)) != std::string::npos; at += 7) {
    scp.insert(at + 1, data);
  }
  write_file(folder / "data" / "feats.scp", scp);
  const auto finished = run({program("batchwright"), "ingest", "kaldi", folder / "data", "--into",
                             folder / "out", "--field", "ali=" + data + "int_vector.scp"});
  CAPTURE(finished.err);
  CHECK(finished.code == 0);
  CHECK(contains(finished.out, "added 6 sequences of 216 frames"));
  CHECK(contains(finished.out, "1 keys of field \"ali\" have no features"));
  const json::value shown =
      object_in(run({program("batchwright"), "inspect", folder / "out", "--json"}));
  const json::array& fields = shown.at("fields").as_array();
  REQUIRE(fields.size() == 4);
  CHECK(fields.at(1).at("kind").as_string() == "aligned");
  CHECK(fields.at(2).at("name").as_string() == "speaker");
  CHECK(fields.at(2).at("categories").as_array().size() == 3);
  CHECK(fields.at(3).at("name").as_string() == "text");
  CHECK(run({program("batchwright"), "verify", folder / "out"}).code == 0);
}

TEST_CASE("command: what Kaldi tables are not read is said with exit code 2") {
  const TemporaryFolder folder;
  const auto refusal = [&folder](const std::string& table) {
    const auto finished =
        run({program("batchwright"), "ingest", "kaldi", table, "--into", folder / "out"});
    CHECK(finished.code == 2);
    return finished.err;
  };
  CHECK(contains(refusal(BATCHWRIGHT_TEST_DATA "/kaldi/feats_command.scp"),
                 "feats_command.scp: line 2 is a command"));
  write_file(folder / "sound" / "wav.scp", "a sox x.wav -t wav - |\n");
  CHECK(contains(refusal(folder / "sound"), "no feats.scp in it; it lists sound (wav.scp)"));
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("command: labels are numbered as another dataset's, or by a list") {
  const Place train;
  train.write_tones(4);
  REQUIRE(train.ingest({"--label-from-folder"}).code == 0);
  const Place valid;
  write_file(valid.folder / "in" / "it" / "1.wav", wav(tone(8000)));
  REQUIRE(valid.ingest({"--label-from-folder", "--labels-like", train.out()}).code == 0);
  const auto categories = [](const Place& place) {
    const json::value shown =
        object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
    return json::value_to<std::vector<std::string>>(shown.at("fields").at(1).at("categories"));
  };
  CHECK(categories(valid) == std::vector<std::string>{"en", "it"});
  write_file(valid.folder / "in" / "ru" / "1.wav", wav(tone(8000)));
  write_file(valid.folder / "labels", "en\nit\nru\n");
  REQUIRE(
      valid.ingest({"--label-from-folder", "--resume", "--labels", valid.folder / "labels"}).code ==
      0);
  CHECK(categories(valid) == std::vector<std::string>{"en", "it", "ru"});
  CHECK(
      contains(valid.ingest({"--labels", valid.folder / "labels"}).err, "fields of labels: none"));
}

TEST_CASE("command: files of other kinds and texts of no file are told") {
  const Place place;
  place.write_tones(2);
  write_file(place.folder / "in" / "en" / "1.m4a", "x");
  write_file(place.folder / "texts", "000|one\n001|two\n002|of no file\n");
  const auto finished = place.ingest({"--transcripts", place.folder / "texts"});
  CHECK(finished.code == 0);
  CHECK(contains(finished.out, "skipped files of other kinds: 1 .m4a\n"));
  CHECK(contains(finished.out, "1 of 3 keys of " + (place.folder / "texts").string() +
                                   " are of no file, such as \"002\"\n"));
}

TEST_CASE("command: an ingest that could take no file has exit code 1") {
  const Place place;
  place.write_tones(2);
  write_file(place.folder / "texts", "x\tno such file\n");
  const auto finished =
      place.ingest({"--transcripts", place.folder / "texts", "--on-error", "skip", "--json"});
  CHECK(finished.code == 1);
  CHECK(contains(finished.err, "none of the 2 files could be taken"));
  CHECK(object_in(finished).at("skipped").as_int64() == 2);
}

TEST_CASE("command: names that are no UTF-8 are JSON all the same") {
  const Place place;
  write_file(place.folder / "in" / "\xE9t\xE9" / "1.wav", wav(tone(8000)));
  const auto ingested = place.ingest({"--json", "--label-from-folder"});
  REQUIRE(ingested.code == 0);
  const json::value shown =
      object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
  CHECK(shown.at("fields").at(1).at("categories").at(0).as_string() == "\xEF\xBF\xBDt\xEF\xBF\xBD");
  const auto again = place.ingest({"--json", "--label-from-folder", "--on-error", "skip"});
  CHECK(object_in(again).at("skipped").as_int64() == 1);
}

TEST_CASE("command: figures count what was committed when the disk is full") {
  const Place place;
  place.write_tones(60);
  // No file may grow beyond 100 blocks of 512 bytes: the dataset's first page fit, no commit does.
  const auto finished =
      run({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh",
           program("batchwright"), "ingest", "audio", place.in(), "--into", place.out(), "--json"});
  CHECK(finished.code == 1);
  const json::value figures = object_in(finished);
  CHECK(figures.at("added").as_int64() == 0);
  CHECK(figures.at("frames").as_int64() == 0);
  CHECK(contains(finished.err, "(60 sequences more were read and could not be committed)"));
  const json::value shown =
      object_in(run({program("batchwright"), "inspect", place.out(), "--json"}));
  CHECK(shown.at("sequences") == figures.at("added"));
}

TEST_CASE("command: output that cannot be written is an error of every command") {
  const Place place;
  place.write_tones(2);
  REQUIRE(place.ingest().code == 0);
  const std::string batchwright = program("batchwright");
  const auto full = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$@\" > /dev/full", "sh"});
    const auto finished = run(words);
    CAPTURE(finished.err);
    CHECK(contains(finished.err, "No space left on device"));
    return finished.code;
  };
  CHECK(full({batchwright, "inspect", place.out()}) == 1);
  CHECK(full({batchwright, "inspect", place.out(), "--json"}) == 1);
  CHECK(full({batchwright, "verify", place.out()}) == 1);
  CHECK(full({batchwright, "plan", "--dataset", place.out(), "--size", "2"}) == 1);
  CHECK(full({batchwright, "ingest", "audio", place.in(), "--into", place.out(), "--resume"}) == 1);
  CHECK(full({batchwright, "keygen", "--into", place.folder / "key"}) == 1);
  CHECK(full({batchwright, "--help"}) == 1);
}

TEST_CASE("command: tail and top end when their output cannot be written") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n");
  REQUIRE(daemon.start());
  const std::string batchwright = program("batchwright");
  const std::string tail = batchwright + " tail --feed train --endpoint " + daemon.endpoint();
  const std::string top = batchwright + " top --stats " + daemon.stats_address();
  for (const std::string& command : {tail + " --epochs 0", tail + " --epochs 0 --json",
                                     top + " --once", top + " --once --json", top}) {
    CAPTURE(command);
    const Finished finished = run({"/bin/sh", "-c", command + " >/dev/full"});
    CHECK(finished.code == 1);
    CHECK(contains(finished.err, "No space left on device"));
  }
}

TEST_CASE("command: every command has help with an example") {
  for (const char* command :
       {"ingest audio", "ingest npy", "ingest npz", "ingest kaldi", "inspect", "verify"}) {
    std::vector<std::string> words = {program("batchwright")};
    std::istringstream parts(command);
    for (std::string word; parts >> word;) words.push_back(word);
    words.emplace_back("--help");
    const auto help = run(words);
    CHECK(help.code == 0);
    CHECK(contains(help.out, std::string("Example: batchwright ") + command));
  }
}
