#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "tests/command/top_pages.h"

using namespace batchwright;
using namespace batchwright::testing;
namespace json = boost::json;

namespace {

/// Names of feeds in the table, from the top.
std::vector<std::string> names(const std::vector<std::string>& lines) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    const bool row = line.starts_with("> ") || line.starts_with("  corpus-");
    if (row && line.find(": ") == std::string::npos) found.push_back(line.substr(2, 9));
  }
  return found;
}

std::string chosen(const std::vector<std::string>& lines) {
  const std::string line = line_with(lines, "> corpus-");
  return line.empty() ? line : line.substr(2, 9);
}

}  // namespace

TEST_CASE("command: top has a row for each feed, with the columns of the dashboard") {
  TopModel model =
      model_of(top_page(top_feed("train", {"storage-bound", 812.4, 7, top_client("cmvn")})));
  const auto lines = texts(model, kWide);
  REQUIRE(lines.size() > 5);
  CHECK(lines[0] == "Batchwright  gpu-07  live");
  CHECK(lines[1] ==
        "  version 0.1.0  up for 1 min 15 s  clients 2  memory in use 1.00 MiB"
        "  batches' memory 1.00 GiB  its limit 4.00 GiB  unix:///s");
  CHECK(line_with(lines, "batches/s") ==
        "  feed   state    verdict        batches/s     bytes/s  clients  worst wait  corrupt  "
        "skipped");
  CHECK(line_with(lines, "> train") ==
        "> train  serving  storage-bound      812/s  1.50 MiB/s        1           –        7    "
        "1,234");
  CHECK(has(lines, "  train: 3 of 4 clients wait"));
}

TEST_CASE("command: top has the worst feed first, and says how many failed") {
  TopModel model = model_of(top_page(
      top_feed("well", {"trainer-bound", 1, 0, ""}) + "," + top_feed("asleep", {"idle", 0, 0, ""}) +
      "," + top_feed("broken", {"failed", 0, 0, ""}) + "," + top_feed("slow")));
  const auto lines = texts(model, kWide);
  CHECK(lines[0] == "Batchwright  gpu-07  1 of 4 feeds failed");
  std::vector<std::string> order;
  for (const std::string& line : lines) {
    for (const char* name : {"well", "asleep", "broken", "slow"}) {
      if (line.substr(std::min<std::size_t>(2, line.size())).starts_with(std::string(name) + " ")) {
        order.emplace_back(name);
      }
    }
  }
  CHECK(order == std::vector<std::string>{"broken", "slow", "well", "asleep"});
  CHECK(has(lines, "  broken: data.mdb: EIO"));  // of the feed at the cursor
}

TEST_CASE("command: top counts the waits of the last ten seconds, of the client that waits most") {
  TopModel model("x");
  for (const double now : {100.0, 105.0, 110.0}) {
    // Until 100 both waited all the time, which is long ago.
    const auto since = [now](const char* name, double waits) {
      return top_client(name, now, 1.0 - (1.0 - waits) * (now - 100.0) / now);
    };
    model.take(top_page(
        top_feed("train", {"mixed", 1, 0, since("a", 0.25) + "," + since("b", 0.75)}), now));
  }
  CHECK(has(texts(model, kWide), "75.0 %"));
  press(model, TopKey::open);
  const auto lines = texts(model, kWide);
  CHECK(
      line_with(lines, "  a (process 42)")
          .starts_with(
              "  a (process 42)  1 / 4       10/s  100 ms  25.0 %         0.0 %  3 of 8 (12.0 s)"));
  CHECK(line_with(lines, "  b (process 42)").find("  75.0 %  ") != std::string::npos);
}

TEST_CASE("command: top forgets what was before the daemon's start") {
  TopModel model("x");
  for (const double now : {100.0, 101.0, 1.0}) {
    model.take(top_page(top_feed("train", {"mixed", 1, 0, top_client("a", now, 1.0)}), now));
  }
  CHECK(line_with(texts(model, kWide), "> train").find("  – ") != std::string::npos);
}

TEST_CASE("command: top does not call a wait of which it has one page a warning") {
  const std::string client = top_client("a", 100.0, 0.5);
  TopModel model = model_of(top_page(top_feed("train", {"assembly-bound", 1, 0, client}), 100.0));
  const auto tone_of = [&model](const std::string& text) {
    for (const TopLine& line : model.draw(kWide)) {
      for (const Piece& piece : line.pieces) {
        if (piece.text.find(text) != std::string::npos) return piece.tone;
      }
    }
    return Tone::bad;
  };
  CHECK(tone_of("–") == Tone::plain);
  const std::string later = top_client("a", 105.0, 55.0 / 105.0);
  model.take(top_page(top_feed("train", {"assembly-bound", 1, 0, later}), 105.0));
  CHECK(tone_of("100.0 %") == Tone::warning);
}

TEST_CASE("command: top has verdicts for slots and processors among those to look at") {
  for (const char* verdict : {"slot-bound", "processor-bound"}) {
    TopModel model = model_of(
        top_page(top_feed("a", {"mixed", 1, 0, ""}) + "," + top_feed("b", {verdict, 1, 0, ""})));
    CHECK(has(texts(model, kWide), "> b"));  // the worst first
    press(model, TopKey::open);
    CHECK(has(texts(model, kWide), std::string("b  ") + verdict + "  the trainer waits"));
  }
}

TEST_CASE(
    "command: top shows the whole reason where the screen has room, and else that it goes on") {
  json::value page = top_page(top_feed("train"));
  std::string why;
  for (int i = 0; i < 60; ++i) why += "word" + std::to_string(i) + " ";
  page.at("feeds").at(0).at("verdict").as_object()["why"] = why + "end";
  TopModel model = model_of(page);
  CHECK(has(texts(model, {80, 40}), "word59 end"));
  const auto cut = texts(model, {80, 14});
  CHECK_FALSE(has(cut, "end"));
  CHECK(has(cut, "word0 "));
  CHECK(has(cut, "\u2026"));
}

TEST_CASE("command: top says how much of the memory in use the kernel may drop") {
  json::value page = top_page(top_feed("train"));
  page.as_object()["mapped_file_bytes"] = 524288;
  TopModel model = model_of(page);
  CHECK(has(texts(model, kWide), "memory in use 1.00 MiB (the kernel may drop 512 KiB)"));
}

TEST_CASE("command: top moves a cursor through fifty feeds, a line, a page or all at once") {
  TopModel model = model_of(top_page(many_feeds(50)));
  const auto shown = [&] { return texts(model, {120, 20}); };
  CHECK(shown().size() == 20);
  const std::size_t rows = names(shown()).size();
  REQUIRE(rows > 8);
  CHECK(chosen(shown()) == "corpus-00");
  press(model, TopKey::up);
  CHECK(chosen(shown()) == "corpus-00");
  press(model, TopKey::down, 2);
  CHECK(chosen(shown()) == "corpus-02");
  CHECK(names(shown()).front() == "corpus-00");
  press(model, TopKey::page_down);
  CHECK(chosen(shown()) == "corpus-" + std::string(rows < 8 ? "0" : "") + std::to_string(2 + rows));
  CHECK(names(shown()).back() == chosen(shown()));
  press(model, TopKey::end);
  CHECK(chosen(shown()) == "corpus-49");
  CHECK(names(shown()).size() == rows);
  CHECK(has(shown(), std::to_string(51 - rows) + " to 50 of 50 feeds"));
  press(model, TopKey::down);
  CHECK(chosen(shown()) == "corpus-49");
  press(model, TopKey::page_up, 9);
  CHECK(chosen(shown()) == "corpus-00");
}

TEST_CASE("command: the cursor of top stays on the screen when the window becomes small") {
  TopModel model = model_of(top_page(many_feeds(50)));
  press(model, TopKey::down, 30);
  for (const std::size_t rows : {60u, 20u, 9u, 6u, 60u}) {
    CHECK(chosen(texts(model, {100, rows})) == "corpus-30");
  }
}

TEST_CASE("command: top sorts by each column, either way, and the cursor stays with its feed") {
  TopModel model = model_of(top_page(many_feeds(12)));
  press(model, TopKey::down, 3);
  press(model, TopKey::next_column);
  auto lines = texts(model, kWide);
  CHECK(has(lines, "  feed \u25b2"));
  CHECK(names(lines).front() == "corpus-00");
  press(model, TopKey::reverse);
  lines = texts(model, kWide);
  CHECK(has(lines, "  feed \u25bc"));
  CHECK(names(lines).front() == "corpus-11");
  CHECK(chosen(lines) == "corpus-03");
  press(model, TopKey::next_column, 3);
  lines = texts(model, kWide);
  CHECK(has(lines, "batches/s \u25bc"));
  CHECK(has(lines, "12 feeds, by batches/s  Enter"));
  CHECK(names(lines).front() == "corpus-11");
  press(model, TopKey::previous_column, 5);  // past the worst first, to the last column
  CHECK(has(texts(model, kWide), "skipped \u25bc"));
  press(model, TopKey::previous_column);
  CHECK(names(texts(model, kWide)).front() == "corpus-00");
  press(model, TopKey::next_column, 2);
  CHECK(has(texts(model, kWide), "the worst first"));
}
