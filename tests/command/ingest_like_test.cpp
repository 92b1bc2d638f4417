#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "tests/integration/daemon_process.h"
#include "tests/storage/ingest/sounds.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What ingest says of a second of sound at 16 kHz, and what the dataset is like.
struct Ingested {
  Finished finished;
  boost::json::value shown;

  std::string setting(const char* name) const {
    const auto& settings = shown.at("settings").as_object();
    const auto found = settings.find(name);
    return found == settings.end() ? "" : std::string(found->value().as_string());
  }
};

Ingested ingest(const std::vector<std::string>& options) {
  const TemporaryFolder folder;
  write_file(folder / "in" / "a.wav", wav(tone(16000), {16000, 1}));
  std::vector<std::string> words = {program("batchwright"), "ingest", "audio",
                                    folder / "in",          "--into", folder / "out"};
  words.insert(words.end(), options.begin(), options.end());
  Ingested ingested{run(words), {}};
  if (ingested.finished.code != 0) return ingested;
  ingested.shown =
      boost::json::parse(run({program("batchwright"), "inspect", folder / "out", "--json"}).out);
  return ingested;
}

std::int64_t frames(const Ingested& ingested) {
  return ingested.shown.at("lengths").at("median").as_int64();
}

std::int64_t bands(const Ingested& ingested) {
  return ingested.shown.at("fields").at(0).at("shape").at(0).as_int64();
}

}  // namespace

TEST_CASE("command: features are those of the convention that is named") {
  const auto whisper = ingest({"--like", "whisper"});
  CHECK(frames(whisper) == 100);
  CHECK(bands(whisper) == 80);
  CHECK(whisper.setting("like") == "whisper");
  CHECK(whisper.setting("mel_scale") == "slaney");
  const auto plain = ingest({});
  CHECK(frames(plain) == 98);
  CHECK(bands(plain) == 40);
  CHECK(plain.setting("like").empty());
}

TEST_CASE("command: options change a convention wherever on the line they stand") {
  const auto kaldi = ingest({"--mel-bands", "40", "--window", "hann", "--like", "kaldi"});
  CHECK(bands(kaldi) == 40);
  CHECK(kaldi.setting("window") == "hann");
  CHECK(kaldi.setting("remove_dc") == "true");
  // A length in milliseconds takes the place of one in samples.
  const auto torchaudio = ingest({"--like", "torchaudio", "--hop-ms", "10", "--window-ms", "20"});
  CHECK(frames(torchaudio) == 101);
  CHECK(torchaudio.setting("window_ms") == "20");
  CHECK(bands(ingest({"--features", "mfcc", "--like", "librosa"})) == 20);
}

TEST_CASE("command: every option of a front end can be set by the name that recipes have") {
  const auto espnet =
      ingest({"--option", "edges=whole", "--like", "librosa", "--option", "log=floor"});
  CHECK(espnet.setting("edges") == "whole");
  CHECK(espnet.setting("log").empty());  // htk's, which is not told
  CHECK(frames(ingest({"--like", "kaldi"})) == 98);
  CHECK(frames(ingest({"--like", "kaldi", "--option", "snip_edges=false"})) == 100);
  CHECK(contains(ingest({"--option", "edges"}).finished.err, "allowed: NAME=VALUE"));
  CHECK(contains(ingest({"--option", "edges=round"}).finished.err,
                 "edges = \"round\"; allowed: zeros, half, whole"));
  CHECK(contains(ingest({"--option", "snipedges=1"}).finished.err, "snip_edges"));
  CHECK(contains(ingest({"--option", "edges=half", "--store", "pcm"}).finished.err,
                 "--option: goes with --store features only"));
}

TEST_CASE("command: files are cut into the segments of a table") {
  const TemporaryFolder folder;
  write_file(folder / "in" / "a.wav", wav(tone(16000), {16000, 1}));
  write_file(folder / "in" / "b.wav", wav(tone(16000), {16000, 1}));
  write_file(folder / "segments", "x a 0.2 0.5\ny a 0.5 0.9\nz gone 0 1\n");
  std::vector<std::string> words = {program("batchwright"), "ingest",           "audio",
                                    folder / "in",          "--into",           folder / "out",
                                    "--segments",           folder / "segments"};
  const auto done = run(words);
  CHECK(done.code == 0);
  CHECK(contains(done.err + done.out, "1 files have no segment"));
  CHECK(contains(done.err + done.out, "such as \"gone\""));
  const auto shown = run({program("batchwright"), "inspect", folder / "out", "--json"});
  CHECK(boost::json::parse(shown.out).at("sequences").as_int64() == 2);
  words.insert(words.end(), {"--store", "encoded"});
  CHECK(contains(run(words).err, "--segments: goes with --store features or pcm only"));
}

TEST_CASE("command: what no convention allows is refused by name") {
  CHECK(contains(ingest({"--like", "kladi"}).finished.err, "kaldi-lhotse"));
  CHECK(
      contains(ingest({"--like", "kaldi", "--mel-bands", "400"}).finished.err, "holds no FFT bin"));
  CHECK(contains(ingest({"--like", "whisper", "--fft-size", "448"}).finished.err,
                 "products of 2, 3, 4 and 5"));
  CHECK(contains(ingest({"--like", "hifigan", "--fmax", "8001"}).finished.err,
                 "up to 8000 Hz, or 0 for that"));
  CHECK(contains(ingest({"--like", "whisper", "--pad-to", "4294967296"}).finished.err,
                 "silence up to 4294967296 samples; allowed: up to 2^32 - 1"));
}
