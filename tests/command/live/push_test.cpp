#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>

#include "tests/command/live/live_daemon.h"

using namespace batchwright;
using namespace batchwright::test;

namespace json = boost::json;

TEST_CASE("command: push gives a live feed each sequence of a dataset, and no one twice") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n" + live_feed(60), 20);
  REQUIRE(daemon.start());
  const std::vector<std::string> push = {"push",   "--feed", "live",  daemon.dataset(),
                                         "--name", "old",    "--json"};
  const json::object first = answer(command(daemon, push));
  CHECK(first.at("sequences").to_number<int>() == 20);
  CHECK(first.at("next").to_number<int>() == 20);
  const json::object again = answer(command(daemon, push));
  CHECK(again.at("sequences").to_number<int>() == 0);
  CHECK(again.at("skipped").to_number<int>() == 20);
  const Finished ended = command(daemon, {"push", "--feed", "live", "--end"});
  REQUIRE_MESSAGE(ended.code == 0, ended.err);

  const auto taken = all_sequences(daemon, "live");
  CHECK(taken.size() == 20);
  CHECK(taken == all_sequences(daemon, "train"));
}

TEST_CASE(
    "command: push reads JSON lines, goes on after the last number, and names what is wrong") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n" + live_feed(60), 1);
  REQUIRE(daemon.start());
  const std::filesystem::path file = daemon.folder() / "lines.jsonl";
  const std::string two =
      "{\"features\": [[1, 2, 3, 4], [5, 6, 7, 8.5]], \"label\": 7, \"key\": \"a\"}\n\n"
      "{\"features\": [[0, 0, 0, 0]], \"label\": -1, \"weight\": 0.5, \"number\": 1}\n";
  const auto push = [&](const std::string& text) {
    std::ofstream(file) << text;
    return command(daemon, {"push", "--feed", "live", "--name", "p", "--json", file});
  };
  CHECK(answer(push(two)).at("sequences").to_number<int>() == 2);
  const auto refused = [&](const std::string& line) {
    const Finished finished = push(two + line + "\n");
    CHECK(finished.code == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused("{\"features\": [[1, 2, 3]], \"label\": 1}"),
      "lines.jsonl:4: features[0] = [1,2,3]; allowed: a list of 4");
  has(refused("{\"features\": [[1, 2, 3, \"x\"]], \"label\": 1}"),
      "lines.jsonl:4: features[0][3] = \"x\"; allowed: a number that float32 can hold");
  has(refused("{\"features\": [[1, 2, 3, 4]], \"label\": 1.5}"),
      "lines.jsonl:4: label = 1.5E0; allowed: a number that int32 can hold");
  has(refused("{\"features\": [[1, 2, 3, 4]]}"),
      "lines.jsonl:4: no \"label\"; feed \"live\" takes \"label\" [] int32, scalar");
  has(refused("{\"features\": [[1, 2, 3, 4]], \"label\": 1, \"lable\": 1}"),
      "lines.jsonl:4: \"lable\" is no field of feed \"live\"");
  has(refused("{\"features\": [[1, 2, 3, 4]], \"label\": 1, \"number\": 3}"),
      "lines.jsonl:4: number = 3; allowed: 2");
  has(refused("{\"features\": [[1, 2, 3, 4]], \"label\": 1, \"version\": 3}"), "number 2: ");
  has(refused("[]"), "lines.jsonl:4: found []; allowed: an object");
  has(refused("{"), "lines.jsonl:4: ");
  CHECK(answer(push(two + "{\"features\": [[1, 2, 3, 4]], \"label\": 1}\n"))
            .at("next")
            .to_number<int>() == 3);
}

TEST_CASE("command: push of a dataset with other fields, or to no live feed, is a wrong call") {
  DaemonProcess daemon(
      "[feed.plan]\nsize = 4\n" + live_feed(60, "label = { dtype = \"int64\", kind = \"scalar\" }"),
      3);
  REQUIRE(daemon.start());
  const auto refused = [&](const std::string& feed) {
    const Finished finished = command(daemon, {"push", "--feed", feed, daemon.dataset()});
    CHECK(finished.code == 2);
    return finished.err;
  };
  CHECK(refused("live").find("feed \"live\" takes \"label\" [] int64, scalar; the dataset has "
                             "\"features\" [T, 4] float32, primary; \"label\" [] int32, scalar") !=
        std::string::npos);
  CHECK(refused("train").find("feed \"train\" has a dataset") != std::string::npos);
  CHECK(refused("none").find("no feed \"none\"") != std::string::npos);
}

TEST_CASE("command: bench has producers push, and clients take what they push") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n" + live_feed(4), 1);
  REQUIRE(daemon.start());
  const auto bench = [&](const std::string& feed, const std::string& length) {
    return command(daemon, {"bench", "--feed", feed, "--producers", "2", "--length", length,
                            "--seconds", "0.1", "--stats", daemon.stats_address(), "--json"});
  };
  const json::object figures = answer(bench("live", "7"));
  const auto number = [&](const char* name) { return figures.at(name).to_number<double>(); };
  CHECK(number("sequences") > 0);
  CHECK(number("bytes") == number("sequences") * (7 * 16 + 4));
  CHECK(number("sequences_per_second") == doctest::Approx(number("sequences") / number("seconds")));
  CHECK(number("sequences_taken") > 0);
  CHECK(number("slowest_share") > 0);
  const Finished longer = bench("live", "51");
  CHECK(longer.code == 2);
  CHECK(longer.err.find("feed \"live\" takes at most 50 frames") != std::string::npos);
  CHECK(bench("train", "7").code == 2);
}
