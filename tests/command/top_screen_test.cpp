#include "client/command/top_screen.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "client/command/top_figures.h"

using namespace batchwright;

namespace {

std::string client(const std::string& name) {
  return R"({"client":")" + name + R"(","rank":1,"ranks":4,"waiting":"daemon","epoch":3,
    "waited_for_daemon_seconds":1.5,"waited_for_client_seconds":0.25,"credit_batches":3,
    "window_batches":8,"lag_batches":2,"position_share":0.5})";
}

std::string feed(const std::string& name, const std::string& subscribers) {
  return R"({"name":")" + name + R"(","state":"serving","reason":"",
    "verdict":{"text":"storage-bound","why":"3 of 4 clients wait, and reading takes 80 % of it"},
    "rates":{"batches_per_second":812.4,"bytes_per_second":1.3e9,"frames_per_second":41000,
      "padded_share":0.031},
    "plans":[{"padded_share":0.03}],"slots":{"free":1,"filling":2,"ready":3,"held":10},
    "slot_bytes":1572864,"pinned":"locked",
    "stages":{"assemble":{"p50_seconds":0.0012,"p99_seconds":0.004}},
    "subscribers":[)" +
         subscribers + "]}";
}

TopView view(const std::string& feeds) {
  return {"http://127.0.0.1:9477",
          boost::json::parse(R"({"version":"0.1.0","uptime_seconds":75,"sessions":2,
            "arena_bytes":1073741824,"memory_ceiling_bytes":4294967296,"feeds":[)" +
                             feeds + "]}"),
          ""};
}

std::string repeated(const std::string& text, int times) {
  std::string all = text;
  for (int i = 1; i < times; ++i) all += "," + text;
  return all;
}

std::vector<std::string> texts(const TopView& shown, TopSize size) {
  std::vector<std::string> lines;
  for (const TopLine& line : draw_top(shown, size)) lines.push_back(line.text());
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

bool has(const std::vector<std::string>& lines, const std::string& what) {
  return joined(lines).find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("command: top shows a feed's verdict above its rates, slots, stages and clients") {
  const auto lines = texts(view(feed("train", client("cmvn"))), {80, 24});
  REQUIRE(lines.size() == 10);
  CHECK(lines[0] == "batchwright 0.1.0  http://127.0.0.1:9477  up 1 min 15 s  2 sessions");
  CHECK(lines[1].starts_with("arenas 1.00 GiB of 4.00 GiB"));
  CHECK(lines[3] == "train  STORAGE-BOUND");
  CHECK(lines[4] == "  3 of 4 clients wait, and reading takes 80 % of it");
  CHECK(lines[5] == "  812 batches/s  1.30 GB/s  41.0 k frames/s  padding 3.1 % (plan 3.0 %)");
  CHECK(lines[6] == "  slots: 10 held, 3 ready, 2 filling, 1 free  of 1.50 MiB  locked");
  CHECK(lines[7] == "  assemble 1.20 ms (p99 4.00 ms)");
  CHECK(lines[9] ==
        "  cmvn                 1/4 daemon       1.50 s       250 ms   3/8    2   3  50 %");
}

TEST_CASE("command: top stays within any size, and counts what it leaves out") {
  const TopView crowded = view(repeated(feed("train", repeated(client("trainer"), 64)), 5));
  for (std::size_t columns : {1u, 20u, 79u, 80u, 81u, 90u, 200u}) {
    for (std::size_t rows : {1u, 2u, 3u, 5u, 8u, 12u, 24u, 60u}) {
      const auto lines = texts(crowded, {columns, rows});
      CHECK(lines.size() <= rows);
      CHECK(std::all_of(lines.begin(), lines.end(),
                        [&](const std::string& line) { return line.size() <= columns; }));
    }
  }
  CHECK(has(texts(crowded, {80, 60}), "and 61 more clients"));
  CHECK(has(texts(crowded, {80, 7}), "and 2 more feeds"));
  CHECK(texts(crowded, {80, 0}).size() > 5 * 64);
}

TEST_CASE("command: top gives every feed its verdict before any feed its clients") {
  const auto lines = texts(view(repeated(feed("train", client("a")), 4)), {80, 8});
  CHECK(std::count(lines.begin(), lines.end(), "train  STORAGE-BOUND") == 4);
}

TEST_CASE("command: top draws a bar where there is room") {
  const auto narrow = texts(view(feed("train", client("cmvn"))), {80, 24});
  const auto wide = texts(view(feed("train", client("cmvn"))), {101, 24});
  CHECK_FALSE(has(narrow, "["));
  CHECK(wide.back().ends_with(" [#########.........]"));
}

TEST_CASE("command: a client's name cannot steer the terminal") {
  const auto lines = texts(view(feed("train", client(R"(\u001b[2Jx\u009by\u00e9\r)"))), {80, 24});
  CHECK(lines.back().starts_with("  ?[2Jx?y??  "));
}

TEST_CASE("command: top shows why a feed failed, and nothing that it does not do any more") {
  const auto lines = texts(view(R"({"name":"valid","state":"failed","reason":"data.mdb: EIO",
      "verdict":{"text":"failed","why":"data.mdb: EIO"},"subscribers":[]})"),
                           {80, 24});
  REQUIRE(lines.size() == 5);
  CHECK(lines[3] == "valid  FAILED");
  CHECK(lines[4] == "  data.mdb: EIO");
}

TEST_CASE("command: top goes on showing the last figures of a daemon that is gone, and says so") {
  TopView gone = view(feed("train", client("cmvn")));
  gone.trouble = "http://127.0.0.1:9477/stats: Connection refused";
  CHECK(has(texts(gone, {80, 24}), "no answer, trying again: http://127.0.0.1:9477/stats"));
  CHECK(has(texts(gone, {80, 24}), "train  STORAGE-BOUND"));
  gone.stats = nullptr;
  CHECK(texts(gone, {100, 24}).size() == 2);
}

TEST_CASE("command: top takes a page of other keys and types for one without figures") {
  const TopView odd{"x", boost::json::parse(R"({"feeds":[1,{"name":7,"slots":[],"verdict":"idle",
      "plans":{},"subscribers":[null,{"client":[]}]}],"sessions":"many"})"),
                    ""};
  CHECK(has(texts(odd, {80, 24}), "0 batches/s"));
  CHECK(has(texts({"x", boost::json::parse("[]"), ""}, {80, 24}), "batchwright"));
}

TEST_CASE("command: figures have three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(7.25) == "7.25");
  CHECK(count_text(999.6) == "1.00 k");
  CHECK(count_text(-1) == "0");
  CHECK(bytes_text(1.3e9) == "1.30 GB");
  CHECK(memory_text(13107200) == "12.5 MiB");
  CHECK(seconds_text(std::nullopt) == "-");
  CHECK(seconds_text(0.00035) == "350 us");
  CHECK(seconds_text(0.9996) == "1.00 s");
  CHECK(seconds_text(250) == "4 min 10 s");
  CHECK(share_text(0.1254) == "12.5 %");
  CHECK(bar_text(0.5, 10) == "[####....]");
  CHECK(bar_text(7, 2).empty());
}
