#include <doctest/doctest.h>

#include "tests/storage/ingest/ingest_place.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("storage: a bad file stops the ingest, and what came before it stays") {
  const Place place;
  std::string bad;
  SUBCASE("empty") {}
  SUBCASE("truncated") { bad = wav(tone(500)).substr(0, 600); }
  SUBCASE("not audio") { bad = std::string(500, 'x'); }
  write_file(place.in("1.wav"), wav(tone(300)));
  write_file(place.in("2.wav"), bad);
  write_file(place.in("3.wav"), wav(tone(300)));
  const auto report = place.audio();
  REQUIRE(report.failure);
  CHECK(report.failure->message.find(place.in("2.wav").string() + ": ") == 0);
  CHECK(place.keys() == Keys{"1"});
}

TEST_CASE("storage: bad files are listed when they are to be skipped") {
  const Place place;
  write_file(place.in("1.wav"), "");
  write_file(place.in("2.wav"), wav(tone(300)));
  write_file(place.in("3.wav"), wav(tone(500)).substr(0, 600));
  write_file(place.in("4.wav"), std::string(500, 'x'));
  write_file(place.in("5.wav"), wav(tone(300)));
  How how;
  how.on_error = OnError::skip;
  const auto report = place.audio(how);
  CHECK_FALSE(report.failure);
  REQUIRE(report.skipped.size() == 3);
  CHECK(report.skipped[0] == place.in("1.wav").string() + ": the file is empty");
  CHECK(report.skipped[1].find("3.wav: truncated") != std::string::npos);
  CHECK(report.skipped[2].find("4.wav: not readable audio") != std::string::npos);
  CHECK(report.figures.skipped == 3);
  CHECK(place.keys() == Keys{"2", "5"});
}

TEST_CASE("storage: another sample rate is an error that names the file and both rates") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(300)));
  write_file(place.in("2.wav"), wav(tone(600), {16000, 1}));
  write_file(place.in("3.wav"), wav(tone(300)));
  How how;
  SUBCASE("stop") {
    CHECK(place.audio(how).failure->message ==
          place.in("2.wav").string() +
              ": sample rate 16000 Hz, but the dataset's is 8000 Hz, which 2 of 3 files looked at "
              "has set");
  }
  SUBCASE("skip") {
    how.on_error = OnError::skip;
    CHECK(place.audio(how).skipped.size() == 1);
    CHECK(place.keys() == Keys{"1", "3"});
  }
}

TEST_CASE("storage: a folder where nothing is audio is refused") {
  const Place place;
  CHECK_FALSE(place.take({}, true));
  std::filesystem::create_directories(place.folder / "in");
  CHECK(place.take({}, true).error().message.find(
            "no .wav, .wave, .w64, .rf64, .flac, .mp3, .ogg, .oga, .opus, .sph, .nist, .aif, "
            ".aiff, .aifc, .au, .snd file below it") != std::string::npos);
  write_file(place.in("1.wav"), "");
  CHECK(place.take({}, true).error().message.find("none of the files is audio") == 0);
  CHECK_FALSE(std::filesystem::exists(place.out()));
}

TEST_CASE("storage: a dataset made with other parameters is not mixed with these") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(300)));
  place.audio();
  How how;
  how.resume = true;
  SUBCASE("a setting") {
    how.audio.front_end.hop_ms = 5;
    CHECK(place.take(how, true).error().message ==
          "dataset " + place.out().string() + " was made with hop_ms = 10, this ingest has 5");
  }
  SUBCASE("a shape") {
    how.audio.front_end.mel_bands = 20;
    CHECK(place.take(how, true).error().code == ErrorCode::schema_mismatch);
  }
}

TEST_CASE("storage: one file of an odd rate does not decide the rate of all") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(600), {16000, 1}));
  for (const char* name : {"2.wav", "3.wav", "4.wav"}) write_file(place.in(name), wav(tone(300)));
  How how;
  how.on_error = OnError::skip;
  SUBCASE("that of most files") {
    CHECK(place.audio(how).skipped.size() == 1);
    CHECK(place.keys() == Keys{"2", "3", "4"});
  }
  SUBCASE("a given one") {
    how.audio.sample_rate = 16000;
    const auto report = place.audio(how);
    REQUIRE(report.skipped.size() == 3);
    CHECK(report.skipped[0].find("is 16000 Hz, which --sample-rate has set") != std::string::npos);
  }
}

TEST_CASE("storage: arrays are not mixed with features of sound, nor the other way round") {
  const Place place;
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 40), }";
  text.resize(117, ' ');
  const std::string npy =
      std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n" + std::string(320, '\0');
  write_file(place.in("1.npy"), npy);
  write_file(place.in("2.wav"), wav(tone(300)));
  SUBCASE("sound into arrays") {
    REQUIRE(place.take({}, false));
    const auto refused = place.take({}, true);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message ==
          "dataset " + place.out().string() + " was made with no features, this ingest has logmel");
  }
  SUBCASE("arrays into sound") {
    REQUIRE(place.take({}, true));
    const auto refused = place.take({}, false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message ==
          "dataset " + place.out().string() +
              " was made with features = logmel, this ingest has no such setting");
  }
}

TEST_CASE("storage: an ingest that skips every file has failed") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(300)));
  write_file(place.in("2.wav"), wav(tone(300)));
  How how;
  how.on_error = OnError::skip;
  write_file(place.folder / "texts", "3\tno such file\n");
  how.annotations.transcripts = place.folder / "texts";
  const auto report = place.audio(how);
  REQUIRE(report.failure);
  CHECK(report.failure->message == "none of the 2 files could be taken; the first: " +
                                       place.in("1.wav").string() + ": key \"1\": no transcript");
  CHECK(report.figures.skipped == 2);
}
