#include "tests/command/top_pages.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <functional>

namespace batchwright::testing {

namespace json = boost::json;

std::string top_client(const std::string& name, double uptime, double waits) {
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

std::string top_feed(const std::string& name, const Shown& shown) {
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

json::value top_page(const std::string& feeds, double uptime) {
  return json::parse(R"({"version":"0.1.0","host":"gpu-07","uptime_seconds":)" +
                     std::to_string(uptime) + R"(,"sessions":2,"arena_bytes":1073741824,
            "memory_ceiling_bytes":4294967296,"resident_bytes":1048576,"feeds":[)" +
                     feeds + "]}");
}

std::string many_feeds(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
    all +=
        (i == 0 ? "" : ",") + top_feed("corpus-" + number, {"trainer-bound", 1.0 + i, 100 - i, ""});
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

std::string line_with(const std::vector<std::string>& lines, const std::string& what) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(what) != std::string::npos;
  });
  return found == lines.end() ? std::string() : *found;
}

void press(TopModel& model, TopKey key, int times) {
  for (int i = 0; i < times; ++i) model.press(key);
}

}  // namespace batchwright::testing
