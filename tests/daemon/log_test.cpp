#include "daemon/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

using namespace batchwright;

namespace {

std::string stream_of(int descriptor) {
  struct stat status {};
  REQUIRE(fstat(descriptor, &status) == 0);
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

enum class Journal { none, standard_error, another };

/// What `events` leave on standard error.
template <class Events>
std::string logged(Journal journal, LogLevel level, Events events) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  if (journal == Journal::standard_error) {
    setenv("JOURNAL_STREAM", stream_of(STDERR_FILENO).c_str(), 1);
  }
  if (journal == Journal::another) setenv("JOURNAL_STREAM", "1:1", 1);
  start_logging(level);
  events();
  unsetenv("JOURNAL_STREAM");
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string text = contents(file);
  std::fclose(file);
  return text;
}

void one_of_each() {
  spdlog::debug("a");
  spdlog::info("b");
  spdlog::warn("c");
  spdlog::error("d");
}

}  // namespace

TEST_CASE("daemon: the journal gets levels as it numbers them") {
  CHECK(logged(Journal::standard_error, LogLevel::debug, one_of_each) ==
        "<7>a\n<6>b\n<4>c\n<3>d\n");
}

TEST_CASE("daemon: less severe events than asked for are not logged") {
  CHECK(logged(Journal::standard_error, LogLevel::info, one_of_each) == "<6>b\n<4>c\n<3>d\n");
  CHECK(logged(Journal::standard_error, LogLevel::warn, one_of_each) == "<4>c\n<3>d\n");
  CHECK(logged(Journal::standard_error, LogLevel::error, one_of_each) == "<3>d\n");
}

TEST_CASE("daemon: people get date, time and level") {
  const auto event = [] { spdlog::warn("feed train failed"); };
  const std::regex form(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} warning feed train failed\n)");
  CHECK(std::regex_match(logged(Journal::none, LogLevel::info, event), form));
  CHECK(std::regex_match(logged(Journal::another, LogLevel::info, event), form));
}

TEST_CASE("daemon: an event is one line, whatever a client calls itself") {
  const auto event = [] { spdlog::info("client {}", "a\n<3>b\x1B[2J\x7F caf\xC3\xA9"); };
  CHECK(logged(Journal::standard_error, LogLevel::info, event) ==
        "<6>client a\\n<3>b\\x1B[2J\\x7F caf\xC3\xA9\n");
}
