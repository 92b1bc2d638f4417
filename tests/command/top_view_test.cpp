#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <string>
#include <vector>

#include "tests/command/top_pages.h"

using namespace batchwright;
using namespace batchwright::testing;

namespace {

namespace json = boost::json;

}  // namespace

TEST_CASE("command: top shows a refused reload until one is taken") {
  json::value stats = top_page(top_feed("dev"));
  stats.as_object()["reload"] = json::parse(
      R"({"applied":0,"refused":1,"last_refusal":"line 3: no such key","last_seconds_ago":30})");
  TopModel model = model_of(stats);
  const auto lines = texts(model, kWider);
  CHECK(has(lines, "The configuration was refused 30"));
  CHECK(has(lines,
            " ago, the previous one stays in effect; a restart would fail: line 3: no such key"));
  stats.at("reload").as_object()["last_refusal"] = nullptr;
  model.take(stats);
  CHECK_FALSE(has(texts(model, kWider), "refused"));
}

TEST_CASE("command: top shows names whole where there is room, and cuts them where there is none") {
  const std::string name = "speech-corpus-of-a-name-that-is-longer-than-forty-columns";
  TopModel model = model_of(top_page(top_feed(name) + "," + top_feed("b")));
  CHECK(has(texts(model, {160, 40}), "  " + name + "  serving"));
  const auto narrow = texts(model, {60, 40});
  CHECK(has(narrow, "  speech-corpus-"));
  CHECK(has(narrow, "\u2026"));
  CHECK(has(narrow, "-forty-columns storage-bound"));
  CHECK_FALSE(has(narrow, "skipped"));
  press(model, TopKey::help);
  CHECK(has(texts(model, {160, 40}), "Backspace: back to all feeds"));
}

TEST_CASE("command: top stays within any size") {
  std::string clients = top_client("trainer");
  for (int i = 1; i < 64; ++i) clients += "," + top_client("trainer" + std::to_string(i));
  TopModel model =
      model_of(top_page(many_feeds(49) + "," + top_feed("train", {"mixed", 1, 0, clients})));
  for (const bool opened : {false, true}) {
    if (opened) press(model, TopKey::open);
    for (const std::size_t columns : {1u, 5u, 20u, 79u, 80u, 81u, 200u}) {
      for (const std::size_t rows : {1u, 2u, 3u, 5u, 8u, 12u, 24u, 70u}) {
        CAPTURE(columns);
        CAPTURE(rows);
        const auto lines = model.draw({columns, rows});
        CHECK(lines.size() <= rows);
        CHECK(std::all_of(lines.begin(), lines.end(),
                          [&](const TopLine& line) { return line.columns() <= columns; }));
      }
    }
  }
}

TEST_CASE("command: top goes on showing the last figures of a daemon that is gone, and says so") {
  TopModel model("http://127.0.0.1:9477");
  model.miss("Connection refused");
  CHECK(texts(model, {100, 24})[0] == "Batchwright  http://127.0.0.1:9477  connection lost");
  CHECK(has(texts(model, {100, 24}), "no answer, trying again: Connection refused"));
  model.take(top_page(top_feed("train")));
  CHECK_FALSE(has(texts(model, kWide), "no answer"));
  model.miss("Connection refused");
  CHECK(has(texts(model, kWide), "no answer, trying again: Connection refused"));
  CHECK(has(texts(model, kWide), "> train"));
  CHECK_FALSE(has(texts(model, kWide), "live"));
}

TEST_CASE("command: top takes a page of other keys and types for one without figures") {
  TopModel model = model_of(json::parse(R"({"feeds":[1,{"name":7,"slots":[],"verdict":"idle",
      "plans":{},"counters":7,"subscribers":[null,{"client":[],"held_seconds":"long"}]}],
      "sessions":"many","uptime_seconds":[]})"));
  CHECK(has(texts(model, kWide), "0/s"));
  press(model, TopKey::open);
  CHECK_FALSE(texts(model, kWide).empty());
  TopModel none = model_of(json::parse("[]"));
  CHECK(has(texts(none, kWide), "Batchwright"));
}

TEST_CASE("command: a snapshot has the table and every feed, and nothing is cut") {
  const std::string name(150, 'x');
  TopMemory memory;
  const json::value stats =
      top_page(top_feed(name, {"mixed", 1, 0, top_client("train.py")}) + "," + many_feeds(50));
  std::vector<std::string> lines;
  for (const TopLine& line : snapshot(stats, memory, "unix:///s")) lines.push_back(line.text());
  CHECK(has(lines, "  " + name + "  serving  mixed"));
  CHECK(has(lines, name + "  mixed"));
  CHECK(has(lines, "corpus-49  trainer-bound"));
  CHECK(line_with(lines, "train.py").ends_with("  1.00 GiB     0 s         250 ms"));
  CHECK_FALSE(has(lines, "\u2026"));
}

TEST_CASE("command: top shows the whole reason where feeds leave room, and whose daemon it is") {
  std::string why = "it";
  for (int i = 0; i < 90; ++i) why += " waits";
  json::value page = top_page(top_feed("train"));
  page.as_object()["feeds"].as_array()[0].as_object()["verdict"].as_object()["why"] = why + " end";
  page.as_object()["user"] = "alice";
  TopModel model = model_of(page);
  CHECK(has(texts(model, {80, 40}), "waits end"));
  CHECK(has(texts(model, {80, 40}), "of user alice"));
  CHECK_FALSE(has(texts(model, {80, 14}), "waits end"));
  CHECK(texts(model, {80, 14}).size() <= 14);
}
