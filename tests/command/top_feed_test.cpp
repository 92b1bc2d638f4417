#include <doctest/doctest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/command/top_pages.h"

using namespace batchwright;
using namespace batchwright::testing;
namespace json = boost::json;

TEST_CASE("command: top opens the feed at the cursor with its clients, and goes back") {
  TopModel model = model_of(
      top_page(top_feed("a") + "," + top_feed("b", {"mixed", 1, 0, top_client("train.py")})));
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
    std::string text = top_client(name);
    const std::string one = "\"rank\":1";
    return text.replace(text.find(one), one.size(), "\"rank\":" + rank);
  };
  TopModel model = model_of(top_page(top_feed(
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
  std::string clients = top_client("c0");
  for (int i = 1; i < 64; ++i) clients += "," + top_client("c" + std::to_string(i));
  TopModel model = model_of(top_page(top_feed("train", {"mixed", 1, 0, clients})));
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
  TopModel model = model_of(top_page(top_feed("a") + "," + top_feed("b")));
  press(model, TopKey::down);
  press(model, TopKey::open);
  model.take(top_page(top_feed("a")));
  CHECK(has(texts(model, kWide), "> a"));
  model.take(top_page(""));
  press(model, TopKey::down);
  press(model, TopKey::open);
  CHECK(has(texts(model, kWide), "0 to 0 of 0 feeds"));
}

TEST_CASE("command: top says what to do for a feed that failed") {
  TopModel model = model_of(top_page(top_feed("broken", {"failed", 0, 0, ""})));
  press(model, TopKey::open);
  const auto lines = texts(model, kWider);
  CHECK(has(lines, "broken  failed  nothing is served"));
  CHECK(has(lines, "  data.mdb: EIO"));
  CHECK(has(lines, "Remedy: once the cause is mended, `systemctl reload batchwrightd`"));
  CHECK(has(lines, "`batchwright verify /data/a /data/b`"));
  CHECK_FALSE(has(lines, "Slots"));
}

TEST_CASE("command: top asks for no reload of a feed that the daemon tries again by itself") {
  json::value page = top_page(top_feed("broken", {"failed", 0, 0, ""}));
  page.at("feeds").at(0).as_object()["retried"] = true;
  TopModel model = model_of(page);
  press(model, TopKey::open);
  const auto lines = texts(model, kWider);
  CHECK(has(lines, "Remedy: mend the cause; the daemon tries the feed again by itself."));
  CHECK_FALSE(has(lines, "reload"));
}

TEST_CASE("command: top names batches of a queue that no worker did") {
  json::value page = top_page(top_feed("train"));
  json::object& feed = page.at("feeds").at(0).as_object();
  const auto shown = [&](json::array undone, int aside) {
    feed["undone"] = std::move(undone);
    feed["counters"].as_object()["queue_set_aside"] = aside;
    TopModel model = model_of(page);
    press(model, TopKey::open);
    return line_with(texts(model, {400, 40}), "queue");
  };
  const auto batch = [](int index, int times, bool set_aside) {
    return json::object{{"epoch", 5}, {"index", index}, {"times", times}, {"set_aside", set_aside}};
  };
  CHECK(shown({}, 0).empty());
  CHECK(
      shown({batch(7, 1, true), batch(9, 3, false)}, 1) ==
      "  1 batch of the queue was set aside since the daemon started (queue_attempts). Epoch 5 of "
      "the queue: batch 7, begun 1 time and not done (set aside); batch 9, begun 3 times and not "
      "done.");
  // Those of an epoch that is over are counted only.
  CHECK(shown({}, 1200) ==
        "  1,200 batches of the queue were set aside since the daemon started "
        "(queue_attempts).");
  json::array many;
  for (int i = 0; i < 10; ++i) many.push_back(batch(i, 3, false));
  const std::string cut = shown(many, 0);
  CHECK(cut.starts_with("  Epoch 5 of the queue: batch 0, begun 3 times and not done; batch 1, "));
  CHECK(cut.ends_with("batch 7, begun 3 times and not done; and 2 more."));
}

TEST_CASE("command: top says what to do for a feed whose dataset was replaced") {
  json::value page = top_page(top_feed("train"));
  json::object& feed = page.at("feeds").at(0).as_object();
  for (const bool stale : {false, true}) {
    CAPTURE(stale);
    feed["dataset_stale"] = stale;
    TopModel model = model_of(page);
    press(model, TopKey::open);
    CHECK(has(texts(model, kWide), "`systemctl reload batchwrightd` opens the feed anew") == stale);
  }
}

TEST_CASE("command: top says what to do for a feed whose file system does not answer") {
  json::value page = top_page(top_feed("train"));
  json::object& feed = page.at("feeds").at(0).as_object();
  for (const bool blocked : {false, true}) {
    CAPTURE(blocked);
    feed["blocked_by"] = blocked ? "dataset /mnt/far" : "";
    TopModel model = model_of(page);
    press(model, TopKey::open);
    CHECK(has(texts(model, kWide), "the feed goes on once its file system answers") == blocked);
  }
}

TEST_CASE("command: a client's name cannot steer the terminal") {
  TopModel model = model_of(
      top_page(top_feed("train", {"mixed", 1, 0, top_client(R"(\u001b[2Jx\u009by\u00e9\r)")})));
  press(model, TopKey::open);
  CHECK(has(texts(model, kWide), "  ?[2Jx?y??  ") == false);
  CHECK(has(texts(model, kWide), "  ?[2Jx?y?? (process 42)"));
}
