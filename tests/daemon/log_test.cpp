#include "daemon/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/stats/stats.h"

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
std::string logged(Journal journal, Severity level, Events events,
                   LogFormat format = LogFormat::text) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  if (journal == Journal::standard_error) {
    setenv("JOURNAL_STREAM", stream_of(STDERR_FILENO).c_str(), 1);
  }
  if (journal == Journal::another) setenv("JOURNAL_STREAM", "1:1", 1);
  start_logging(level, format);
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
  CHECK(logged(Journal::standard_error, Severity::debug, one_of_each) ==
        "<7>a\n<6>b\n<4>c\n<3>d\n");
}

TEST_CASE("daemon: less severe events than asked for are not logged") {
  CHECK(logged(Journal::standard_error, Severity::info, one_of_each) == "<6>b\n<4>c\n<3>d\n");
  CHECK(logged(Journal::standard_error, Severity::warning, one_of_each) == "<4>c\n<3>d\n");
  CHECK(logged(Journal::standard_error, Severity::error, one_of_each) == "<3>d\n");
}

TEST_CASE("daemon: people get date, time, zone and level") {
  const auto event = [] { spdlog::warn("feed train failed"); };
  const std::regex form(
      R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d warning feed train failed\n)");
  CHECK(std::regex_match(logged(Journal::none, Severity::info, event), form));
  CHECK(std::regex_match(logged(Journal::another, Severity::info, event), form));
}

TEST_CASE("daemon: an event is one line, whatever a client calls itself") {
  const auto event = [] { spdlog::info("client {}", "a\n<3>b\x1B[2J\x7F caf\xC3\xA9"); };
  CHECK(logged(Journal::standard_error, Severity::info, event) ==
        "<6>client a\\n<3>b\\x1B[2J\\x7F caf\xC3\xA9\n");
}

TEST_CASE("daemon: a program gets one JSON object a line, with what an event is about") {
  const auto events = [] {
    EventLog log;
    log.note<Event::subscribed>("train", 0xABCu, "replica", 1u, 2u, 1u, 1u, 4u);
    log.note<Event::feed_failed>(wire::EventT{}, "dev", "batch 3: \"x\"\n\xFF");
    spdlog::error("a line of no event");
  };
  const std::string text = logged(Journal::none, Severity::info, events, LogFormat::json);
  std::istringstream lines(text);
  std::vector<boost::json::object> objects;
  for (std::string line; std::getline(lines, line);) {
    objects.push_back(boost::json::parse(line).as_object());
  }
  REQUIRE(objects.size() == 3);
  const std::regex rfc3339(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)");
  for (const auto& object : objects) {
    CHECK(std::regex_match(std::string(object.at("time").as_string()), rfc3339));
  }
  CHECK(objects[0].at("level") == "info");
  CHECK(objects[0].at("event") == "subscribed");
  CHECK(objects[0].at("feed") == "train");
  CHECK(objects[0].at("session") == "abc");
  CHECK(objects[0].at("message").as_string().starts_with("feed train: session abc subscribes"));
  CHECK(objects[1].at("level") == "error");
  CHECK(objects[1].at("feed") == "dev");
  CHECK(objects[1].at("message") == "feed dev failed: batch 3: \"x\"\n\uFFFD");
  CHECK_FALSE(objects[1].contains("session"));
  CHECK_FALSE(objects[2].contains("event"));
  CHECK(objects[2].at("message") == "a line of no event");
}

TEST_CASE("daemon: the journal gets the level before an object, too, and the form can change") {
  const auto events = [] {
    spdlog::warn("a");
    set_logging(Severity::error, LogFormat::text);
    spdlog::warn("b");
    spdlog::error("c");
  };
  const std::string text = logged(Journal::standard_error, Severity::info, events, LogFormat::json);
  CHECK(text.starts_with("<4>{\"time\":\""));
  CHECK(text.ends_with("\"message\":\"a\"}\n<3>c\n"));
}
