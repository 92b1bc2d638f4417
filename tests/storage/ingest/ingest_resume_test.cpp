#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/process.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("storage: a dataset grows by another folder made in the same way") {
  const Place place;
  write_file(place.in("1.wav"), wav(tone(300)));
  place.audio();
  std::filesystem::remove_all(place.folder / "in");
  write_file(place.in("2.wav"), wav(tone(300)));
  place.audio();
  CHECK(place.keys() == Keys{"1", "2"});
}

TEST_CASE("storage: a key that is taken is an error, or passed over on resume") {
  const Place place;
  place.write_tones(5);
  place.audio();
  place.write_tones(9);
  How how;
  SUBCASE("stop") {
    const auto report = place.audio(how);
    CHECK(report.failure->code == ErrorCode::already_exists);
    CHECK(report.failure->message.find("key \"a/000\" is already in dataset") != std::string::npos);
  }
  SUBCASE("skip") {
    how.on_error = OnError::skip;
    CHECK(place.audio(how).figures.skipped == 5);
    CHECK(place.keys().size() == 9);
  }
  SUBCASE("resume") {
    how.resume = true;
    const auto report = place.audio(how);
    CHECK(report.figures.present == 5);
    CHECK(report.figures.added == 4);
    CHECK(report.skipped.empty());
    CHECK(place.keys().size() == 9);
  }
}

TEST_CASE("storage: two files of one key are an error of the second, on resume too") {
  const Place place;
  write_file(place.in("1.oga"), wav(tone(300)));
  write_file(place.in("1.wav"), wav(tone(300)));
  How how;
  how.on_error = OnError::skip;
  for (const bool resume : {false, true}) {
    how.resume = resume;
    const auto report = place.audio(how);
    CHECK(report.skipped.back() ==
          place.in("1.wav").string() + ": key \"1\" is also that of " + place.in("1.oga").string());
  }
  CHECK(place.keys() == Keys{"1"});
}

TEST_CASE("storage: an ingest ended from outside keeps what it has, and resumes after it") {
  const Place place;
  place.write_tones(50);
  How how;
  how.watch = [](const IngestFigures& figures) { return figures.taken < 20; };
  const auto report = place.audio(how);
  CHECK(report.interrupted);
  CHECK(place.snapshot()->sequences() == 20);
  how = {};
  how.resume = true;
  CHECK(place.audio(how).figures.added == 30);
}

TEST_CASE("storage: a killed ingest leaves a sound dataset, and resume completes it") {
  const Place place;
  const Place whole;
  place.write_tones(200);
  whole.write_tones(200);
  How how;
  how.limits.commit_sequences = 1;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Waits for its death in the middle, should the parent be slow.
    how.watch = [](const IngestFigures& figures) {
      if (figures.taken == 100) pause();
      return true;
    };
    static_cast<void>(place.take(how, true));
    _exit(0);
  }
  CHECK(eventually([&place] {
    Catalog catalog;
    const auto dataset = catalog.open({place.out()});
    if (!dataset) return false;
    const auto snapshot = (*dataset)->snapshot();
    return snapshot && (*snapshot)->sequences() > 3;
  }));
  kill(child, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  const std::uint64_t before = place.snapshot()->sequences();
  CHECK(before <= 100);
  CHECK(verify_dataset({place.out()})->sound());

  How again;
  again.resume = true;
  const auto report = place.audio(again);
  CHECK(report.figures.present == before);
  CHECK(report.figures.added == 200 - before);
  whole.audio();
  CHECK(place.keys() == whole.keys());
  CHECK(place.snapshot()->content() == whole.snapshot()->content());
}
