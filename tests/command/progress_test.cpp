#include "client/command/progress.h"

#include <doctest/doctest.h>

#include <memory>

using namespace batchwright;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ProgressLine::Time kStart{};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string content(const File& file) {
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  REQUIRE(std::fread(text.data(), 1, text.size(), file.get()) == text.size());
  return text;
}

}  // namespace

TEST_CASE("command: a progress line has share, text and time left") {
  const File file(std::tmpfile());
  ProgressLine progress(file.get(), kStart, false);
  progress.print(kStart + seconds(10), 25, 100, "25 of 100 files");
  CHECK(content(file) == " 25 %  25 of 100 files  30 s left\n");
}

TEST_CASE("command: a file that is no terminal gets a plain line now and then") {
  const File file(std::tmpfile());
  ProgressLine progress(file.get(), kStart, false);
  CHECK_FALSE(progress.due(kStart + milliseconds(4900), 90, 100));
  CHECK(progress.due(kStart + seconds(5), 10, 100));
  progress.print(kStart + seconds(5), 10, 100, "");
  CHECK_FALSE(progress.due(kStart + seconds(9), 90, 100));
  CHECK_FALSE(progress.due(kStart + seconds(30), 19, 100));
  CHECK(progress.due(kStart + seconds(30), 20, 100));
  CHECK(progress.due(kStart + seconds(65), 11, 100));
}

TEST_CASE("command: a terminal's line is written over itself and wiped at the end") {
  const File file(std::tmpfile());
  {
    ProgressLine progress(file.get(), kStart, true);
    CHECK_FALSE(progress.due(kStart + milliseconds(99), 1, 100));
    CHECK(progress.due(kStart + milliseconds(100), 1, 100));
    progress.print(kStart + seconds(1), 0, 100, "none");
  }
  CHECK(content(file) == "\r\x1b[K  0 %  none\r\x1b[K");
}

TEST_CASE("command: durations are told in the two units that matter") {
  CHECK(duration_text(3.4) == "3 s");
  CHECK(duration_text(250) == "4 min 10 s");
  CHECK(duration_text(7500) == "2 h 5 min");
}
