#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>
#include <regex>

#include "tests/command/live/live_daemon.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE(
    "command: over tcp:// with keys, sequences larger than a message are pushed as others are") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n" + live_feed(1), 1);
  const std::string prefix = (daemon.folder() / "server").string();
  REQUIRE(run({program("batchwright"), "keygen", "--into", prefix}).code == 0);
  std::string& config = daemon.config();
  config.insert(config.find("\"]\n") + 1, ", \"tcp://127.0.0.1:0\"");
  config.insert(config.find("stats ="), "curve_secret_key_file = \"" + prefix + ".secret\"\n");
  config.replace(config.find("max_length = 50"), 15, "max_length = 300000");
  REQUIRE(daemon.start());
  std::smatch found;
  const std::string log = daemon.process().err();
  REQUIRE(std::regex_search(log, found, std::regex("tcp://127\\.0\\.0\\.1:[0-9]+")));
  std::string key = read_file(prefix + ".public");
  key.resize(40);

  const std::filesystem::path file = daemon.folder() / "long.jsonl";
  const std::vector<std::uint32_t> lengths = {130'000, 3, 61'440};  // 3 messages, 1, and 2
  {
    std::ofstream lines(file);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      lines << "{\"label\": " << i << ", \"features\": [";
      for (std::uint32_t t = 0; t < lengths[i]; ++t) {
        lines << (t == 0 ? "" : ",") << "[" << t << ",1,2," << i << "]";
      }
      lines << "]}\n";
    }
  }
  const Finished pushed = run({program("batchwright"), "push", "--feed", "live", file, "--endpoint",
                               found[0], "--server-key", key, "--end", "--json"});
  CHECK(answer(pushed).at("sequences").to_number<int>() == 3);
  const auto taken = all_sequences(daemon, "live");
  REQUIRE(taken.size() == 3);
  for (const Taken& each : taken) {
    const std::vector<float>& values = each.second;
    const auto i = static_cast<std::size_t>(values[0]);
    REQUIRE(values.size() == 1 + 4 * std::size_t{lengths.at(i)});
    CHECK(values[values.size() - 4] == static_cast<float>(lengths[i] - 1));
    CHECK(values.back() == static_cast<float>(i));
  }
}
