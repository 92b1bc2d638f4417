#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <functional>
#include <string>
#include <vector>

#include "client/command/top/figures.h"
#include "client/command/top/model.h"

using namespace batchwright;

namespace {

namespace json = boost::json;

std::string client(const std::string& name, double uptime = 0, double waits = 0) {
  return R"({"session":"a1","subscription":)" +
         std::to_string(std::hash<std::string>()(name) % 999) + R"(,"client":")" + name +
         R"(","pid":42,"mode":"sharded","rank":1,"ranks":4,
    "waiting":"daemon","epoch":3,"step":1200,"held_batches":3,"held_seconds":12.0,
    "window_batches":8,"lag_batches":2,"position_share":0.5,"delivered_bytes":1073741824,
    "delivered_batches":)" +
         std::to_string(10 * uptime) +
         R"(,"waited_for_client_seconds":0.25,"waited_for_daemon_seconds":)" +
         std::to_string(waits * uptime) + "}";
}

struct Shown {
  std::string verdict = "storage-bound";
  double batches = 812.4;
  int corrupt = 0;
  std::string clients;
};

std::string feed(const std::string& name, const Shown& shown = {}) {
  const bool failed = shown.verdict == "failed";
  return R"({"name":")" + name + R"(","state":")" + (failed ? "failed" : "serving") +
         R"(","reason":")" + (failed ? "data.mdb: EIO" : "") + R"(","dataset":["/data/a","/data/b"],
    "verdict":{"text":")" +
         shown.verdict + R"(","why":"3 of 4 clients wait"},
    "rates":{"batches_per_second":)" +
         std::to_string(shown.batches) +
         R"(,"bytes_per_second":1572864,"frames_per_second":41000,"sequences_per_second":3300,
      "padded_share":0.031},
    "counters":{"corrupt_records":)" +
         std::to_string(shown.corrupt) +
         R"(,"sequences_skipped":1234},
    "plans":[{"padded_share":0.03}],"slots":{"free":1,"filling":2,"ahead":3,"kept":4,"held":10},
    "plan_seconds":0.25,"arena_bytes":1572864,"pinned":"locked",
    "stages":{"assemble":{"count":7,"p50_seconds":0.0012,"p99_seconds":0.004}},
    "subscribers":[)" +
         shown.clients + "]}";
}

json::value page(const std::string& feeds, double uptime = 75) {
  return json::parse(R"({"version":"0.1.0","host":"gpu-07","uptime_seconds":)" +
                     std::to_string(uptime) + R"(,"sessions":2,"arena_bytes":1073741824,
            "memory_ceiling_bytes":4294967296,"resident_bytes":1048576,"feeds":[)" +
                     feeds + "]}");
}

/// `count` feeds, corpus-00 and on: the larger the number, the more batches and the fewer faults.
std::string many(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
    all += (i == 0 ? "" : ",") + feed("corpus-" + number, {"trainer-bound", 1.0 + i, 100 - i, ""});
  }
  return all;
}

TopModel model_of(const json::value& stats) {
  TopModel model("unix:///s");
  model.take(stats);
  return model;
}

std::vector<std::string> texts(TopModel& model, TopSize size) {
  std::vector<std::string> lines;
  for (const TopLine& line : model.draw(size)) lines.push_back(line.text());
  return lines;
}

bool has(const std::vector<std::string>& lines, const std::string& what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

/// The line that has `what`; empty when none has.
std::string line_with(const std::vector<std::string>& lines, const std::string& what) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(what) != std::string::npos;
  });
  return found == lines.end() ? std::string() : *found;
}

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

void press(TopModel& model, TopKey key, int times = 1) {
  for (int i = 0; i < times; ++i) model.press(key);
}

/// All that the keys mean in these bytes, after a pause.
std::vector<TopKey> keys_in(std::string_view bytes) {
  KeyReader reader;
  std::vector<TopKey> keys;
  for (const char byte : bytes) {  // a slow line: one byte at a time
    reader.add({&byte, 1});
    while (const auto key = reader.next()) keys.push_back(*key);
  }
  if (const auto key = reader.finish()) keys.push_back(*key);
  return keys;
}

constexpr TopSize kWide{140, 40};
constexpr TopSize kWider{200, 40};

}  // namespace

TEST_CASE("command: top has a row for each feed, with the columns of the dashboard") {
  TopModel model = model_of(page(feed("train", {"storage-bound", 812.4, 7, client("cmvn")})));
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
        "> train  serving  storage-bound      812/s  1.50 MiB/s        1       0.0 %        7    "
        "1,234");
  CHECK(has(lines, "  train: 3 of 4 clients wait"));
}

TEST_CASE("command: top has the worst feed first, and says how many failed") {
  TopModel model = model_of(page(feed("well", {"trainer-bound", 1, 0, ""}) + "," +
                                 feed("asleep", {"idle", 0, 0, ""}) + "," +
                                 feed("broken", {"failed", 0, 0, ""}) + "," + feed("slow")));
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
      return client(name, now, 1.0 - (1.0 - waits) * (now - 100.0) / now);
    };
    model.take(
        page(feed("train", {"mixed", 1, 0, since("a", 0.25) + "," + since("b", 0.75)}), now));
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
    model.take(page(feed("train", {"mixed", 1, 0, client("a", now, 1.0)}), now));
  }
  CHECK(line_with(texts(model, kWide), "> train").find(" 0.0 %") != std::string::npos);
}

TEST_CASE("command: top moves a cursor through fifty feeds, a line, a page or all at once") {
  TopModel model = model_of(page(many(50)));
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
  TopModel model = model_of(page(many(50)));
  press(model, TopKey::down, 30);
  for (const std::size_t rows : {60u, 20u, 9u, 6u, 60u}) {
    CHECK(chosen(texts(model, {100, rows})) == "corpus-30");
  }
}

TEST_CASE("command: top sorts by each column, either way, and the cursor stays with its feed") {
  TopModel model = model_of(page(many(12)));
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

TEST_CASE("command: top opens the feed at the cursor with its clients, and goes back") {
  TopModel model = model_of(page(feed("a") + "," + feed("b", {"mixed", 1, 0, client("train.py")})));
  press(model, TopKey::down);
  press(model, TopKey::open);
  const auto lines = texts(model, kWide);
  CHECK(has(lines, "b  mixed  both wait"));
  CHECK(has(lines, "  batches 1/s  bytes 1.50 MiB/s  frames 41.0 k/s"));
  CHECK(has(lines, "padding now 3.1 %  padding planned 3.0 %"));
  CHECK(has(lines, "10 held by clients  3 ready for a client to come  4 had by all"));
  CHECK(line_with(lines, "train.py").starts_with("  train.py (process 42)  1 / 4 "));
  CHECK(line_with(lines, "train.py").find("3 of 8 (12.0 s)  2 batches") != std::string::npos);
  CHECK(line_with(lines, "  assemble").ends_with(" 7  1.20 ms         4.00 ms"));
  CHECK_FALSE(has(lines, "> "));
  const auto narrow = texts(model, {60, 40});
  CHECK(has(narrow, "  both wait: the trainer for the daemon, and the daemon,"));
  CHECK(has(narrow, "  longer, for the trainer"));
  press(model, TopKey::back);
  CHECK(has(texts(model, kWide), "> b"));
}

TEST_CASE("command: top has the ranks of a job beside each other") {
  const auto ranked = [](const std::string& name, const std::string& rank) {
    std::string text = client(name);
    const std::string one = "\"rank\":1";
    return text.replace(text.find(one), one.size(), "\"rank\":" + rank);
  };
  TopModel model = model_of(page(feed(
      "train", {"mixed", 1, 0,
                ranked("train", "2") + "," + ranked("probe", "3") + "," + ranked("train", "0")})));
  press(model, TopKey::open);
  std::vector<std::string> order;
  for (const std::string& line : texts(model, kWide)) {
    const std::size_t at = line.find(" / 4 ");
    if (at != std::string::npos) order.push_back(line.substr(2, 5) + line[at - 1]);
  }
  CHECK(order == std::vector<std::string>{"probe3", "train0", "train2"});
}

TEST_CASE("command: an open feed scrolls, and no further than its end") {
  std::string clients = client("c0");
  for (int i = 1; i < 64; ++i) clients += "," + client("c" + std::to_string(i));
  TopModel model = model_of(page(feed("train", {"mixed", 1, 0, clients})));
  press(model, TopKey::open);
  const TopSize size{100, 24};
  CHECK(has(texts(model, size), "train  mixed"));
  press(model, TopKey::end);
  CHECK(has(texts(model, size), "  deliver "));
  const auto end = texts(model, size);
  press(model, TopKey::down, 3);
  CHECK(texts(model, size) == end);
  press(model, TopKey::up);
  CHECK(texts(model, size) != end);
  press(model, TopKey::home);
  CHECK(has(texts(model, size), "train  mixed"));
}

TEST_CASE("command: top leaves a feed that is no longer there") {
  TopModel model = model_of(page(feed("a") + "," + feed("b")));
  press(model, TopKey::down);
  press(model, TopKey::open);
  model.take(page(feed("a")));
  CHECK(has(texts(model, kWide), "> a"));
  model.take(page(""));
  press(model, TopKey::down);
  press(model, TopKey::open);
  CHECK(has(texts(model, kWide), "0 to 0 of 0 feeds"));
}

TEST_CASE("command: top shows a refused reload until one is taken") {
  json::value stats = page(feed("dev"));
  stats.as_object()["reload"] = json::parse(
      R"({"applied":0,"refused":1,"last_refusal":"line 3: no such key","last_seconds_ago":30})");
  TopModel model = model_of(stats);
  const auto lines = texts(model, kWider);
  CHECK(has(lines, "The configuration was refused 30"));
  CHECK(has(lines, " ago, the one before it goes on; a restart would fail: line 3: no such key"));
  stats.at("reload").as_object()["last_refusal"] = nullptr;
  model.take(stats);
  CHECK_FALSE(has(texts(model, kWider), "refused"));
}

TEST_CASE("command: top says what to do for a feed that failed") {
  TopModel model = model_of(page(feed("broken", {"failed", 0, 0, ""})));
  press(model, TopKey::open);
  const auto lines = texts(model, kWider);
  CHECK(has(lines, "broken  failed  nothing is served"));
  CHECK(has(lines, "  data.mdb: EIO"));
  CHECK(has(lines, "Remedy: once the cause is mended, `systemctl reload batchwrightd`"));
  CHECK(has(lines, "`batchwright verify /data/a /data/b`"));
  CHECK_FALSE(has(lines, "Slots"));
}

TEST_CASE("command: top shows names whole where there is room, and cuts them where there is none") {
  const std::string name = "speech-corpus-of-a-name-that-is-longer-than-forty-columns";
  TopModel model = model_of(page(feed(name) + "," + feed("b")));
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
  std::string clients = client("trainer");
  for (int i = 1; i < 64; ++i) clients += "," + client("trainer" + std::to_string(i));
  TopModel model = model_of(page(many(49) + "," + feed("train", {"mixed", 1, 0, clients})));
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

TEST_CASE("command: a client's name cannot steer the terminal") {
  TopModel model =
      model_of(page(feed("train", {"mixed", 1, 0, client(R"(\u001b[2Jx\u009by\u00e9\r)")})));
  press(model, TopKey::open);
  CHECK(has(texts(model, kWide), "  ?[2Jx?y??  ") == false);
  CHECK(has(texts(model, kWide), "  ?[2Jx?y?? (process 42)"));
}

TEST_CASE("command: top goes on showing the last figures of a daemon that is gone, and says so") {
  TopModel model("http://127.0.0.1:9477");
  model.miss("Connection refused");
  CHECK(texts(model, {100, 24})[0] == "Batchwright  http://127.0.0.1:9477  connection lost");
  CHECK(has(texts(model, {100, 24}), "no answer, trying again: Connection refused"));
  model.take(page(feed("train")));
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
  const json::value stats = page(feed(name, {"mixed", 1, 0, client("train.py")}) + "," + many(50));
  std::vector<std::string> lines;
  for (const TopLine& line : snapshot(stats, memory, "unix:///s")) lines.push_back(line.text());
  CHECK(has(lines, "  " + name + "  serving  mixed"));
  CHECK(has(lines, name + "  mixed"));
  CHECK(has(lines, "corpus-49  trainer-bound"));
  CHECK(line_with(lines, "train.py").ends_with("  1.00 GiB     0 s         250 ms"));
  CHECK_FALSE(has(lines, "\u2026"));
}

TEST_CASE("command: keys are found in what terminals send, byte by byte") {
  using K = TopKey;
  CHECK(keys_in("jkq?<>r\r") == std::vector<K>{K::down, K::up, K::quit, K::help, K::previous_column,
                                               K::next_column, K::reverse, K::open});
  CHECK(keys_in("\x1b[A\x1bOB\x1b[5~\x1b[6~") ==
        std::vector<K>{K::up, K::down, K::page_up, K::page_down});
  CHECK(keys_in("\x1b[H\x1b[4~\x1bOF\x1b[1~") == std::vector<K>{K::home, K::end, K::end, K::home});
  CHECK(keys_in("\x1b[1;5A\x1b[6;2~") == std::vector<K>{K::up, K::page_down});
  CHECK(keys_in("\x1b") == std::vector<K>{K::back});
  CHECK(keys_in("\x7f\x08") == std::vector<K>{K::back, K::back});
  CHECK(keys_in("\x1b\x1b[B") == std::vector<K>{K::back, K::down});
  CHECK(keys_in("x\xc3\xa9") == std::vector<K>{K::other, K::other, K::other});
  CHECK(keys_in("\x1b[") == std::vector<K>{K::other});
  CHECK(keys_in("\x1b[200~") == std::vector<K>{K::other});
  // What never ends is no key, and what follows is one.
  const auto flood = keys_in("\x1b[" + std::string(1000, '1') + "Aj");
  CHECK(flood.back() == K::down);
}

TEST_CASE("command: figures have three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(7.25) == "7.25");
  CHECK(count_text(999.6) == "1.00 k");
  CHECK(count_text(-1) == "0");
  CHECK(whole_text(999) == "999");
  CHECK(whole_text(1234567) == "1,234,567");
  CHECK(rate_text(41000) == "41.0 k/s");
  CHECK(memory_text(13107200) == "12.5 MiB");
  CHECK(seconds_text(std::nullopt) == "-");
  CHECK(seconds_text(0.00035) == "350 us");
  CHECK(seconds_text(0.9996) == "1.00 s");
  CHECK(seconds_text(250) == "4 min 10 s");
  CHECK(share_text(0.1254) == "12.5 %");
  CHECK(bar_text(0.5, 10) == "[####....]");
  CHECK(bar_text(7, 2).empty());
}

TEST_CASE("command: a line is cut where it is too long, also between characters of several bytes") {
  CHECK(cut_to("feeds", 5) == "feeds");
  CHECK(cut_to("feeds", 4) == "fee\u2026");
  CHECK(cut_to("a\u2013b\u2013c", 4) == "a\u2013b\u2026");
  CHECK(cut_to("feeds", 0).empty());
  CHECK(cut_within("corpus-10", 9) == "corpus-10");
  CHECK(cut_within("corpus-10", 8) == "corp\u2026-10");
  CHECK(cut_within("\u2013\u2013\u2013\u2013", 3) == "\u2013\u2026\u2013");
  CHECK(cut_within("corpus-10", 1) == "\u2026");
  CHECK(cut_within("corpus-10", 0).empty());
  CHECK(columns_of("a\u2013\u25bc") == 3);
  CHECK(in_ascii("a\u2013\u25bc\u25b2\u2026") == "a-v^~");
}
