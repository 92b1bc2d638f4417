#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "client/command/top/hosts.h"
#include "tests/command/top_pages.h"

using namespace batchwright;
using namespace batchwright::testing;

namespace {

/// The page of one host, with this feed's figures.
HostPage host(const std::string& name, const Shown& shown, double uptime = 75,
              const std::string& feed = "train") {
  auto page = top_page(top_feed(feed, shown), uptime);
  page.as_object()["host"] = name;
  return {"http://" + name + ":9477", std::move(page), {}};
}

std::vector<std::string> open_page(TopModel& model) {
  press(model, TopKey::open);
  return texts(model, {200, 60});
}

}  // namespace

TEST_CASE("command: top adds up the daemons of several hosts, with the worst one's verdict") {
  const auto page = merged({host("n1", {"trainer-bound", 100, 1, top_client("a.py")}),
                            host("n2", {"storage-bound", 50, 2, top_client("a.py")})});
  TopModel model = model_of(page);
  const auto all = texts(model, kWide);
  CHECK(has(all, "2 of 2 daemons answer"));
  CHECK(has(all, "clients 4"));  // 2 + 2 sessions
  CHECK(has(all, "memory in use 2.00 MiB"));
  CHECK(has(all, "batches' memory 2.00 GiB"));
  const std::string row = line_with(all, "> train");
  CHECK(row.find("storage-bound") != row.npos);
  CHECK(row.find("150/s") != row.npos);
  CHECK(row.find("3.00 MiB/s") != row.npos);
  CHECK(has(all, "train: n2: 3 of 4 clients wait"));
}

TEST_CASE("command: an opened feed of several hosts has a table of them, and one of all ranks") {
  const auto page = merged({host("n1", {"trainer-bound", 100, 0, top_client("a.py")}),
                            host("n2", {"storage-bound", 50, 0, top_client("a.py")})});
  TopModel model = model_of(page);
  const auto opened = open_page(model);
  CHECK(has(opened, "Hosts"));
  CHECK(line_with(opened, "  n1  ").find("trainer-bound") != std::string::npos);
  CHECK(line_with(opened, "  n2  ").find("storage-bound") != std::string::npos);
  std::vector<std::string> clients;
  for (const std::string& each : opened) {
    if (each.find("a.py (process 42)") != each.npos) clients.push_back(each);
  }
  REQUIRE(clients.size() == 2);
  CHECK(clients[0].find(" n1 ") != clients[0].npos);
  CHECK(clients[1].find(" n2 ") != clients[1].npos);
  CHECK(has(opened, "2 free"));  // slots
  CHECK(has(opened, "20 held by clients"));
  CHECK(line_with(opened, "  assemble").find("14") != std::string::npos);
}

TEST_CASE("command: top names the daemons that do not answer, and feeds of some hosts alone") {
  const auto page = merged({host("n1", {"trainer-bound", 100, 0, ""}),
                            {"http://n2:9477", nullptr, "Connection refused"},
                            host("n3", {"trainer-bound", 7, 0, ""}, 75, "valid")});
  TopModel model = model_of(page);
  const auto all = texts(model, kWide);
  CHECK(has(all, "2 of 3 daemons answer"));
  CHECK(has(all, "no answer of http://n2:9477: Connection refused"));
  CHECK(has(all, "> train"));
  CHECK(has(all, "  valid"));
}

TEST_CASE("command: several daemons of one machine are told apart by their addresses") {
  auto second = host("n1", {"trainer-bound", 7, 0, ""});
  second.address = "http://n1:9478";
  TopModel model = model_of(merged({host("n1", {"storage-bound", 1, 0, ""}), second}));
  const auto opened = open_page(model);
  CHECK(has(opened, "  http://n1:9477"));
  CHECK(has(opened, "  http://n1:9478"));
}

TEST_CASE("command: waits are by the clock of each client's own daemon") {
  // n2 was started again in between; sessions and subscriptions are equal on both.
  const auto pages = [](double first, double second) {
    return merged({host("n1", {"mixed", 1, 0, top_client("a.py", first, 0.5)}, first),
                   host("n2", {"mixed", 1, 0, top_client("a.py", second, 0.25)}, second)});
  };
  TopModel model("2 daemons");
  model.take(pages(100, 500));
  model.take(pages(105, 3));
  model.take(pages(108, 6));
  const auto opened = open_page(model);
  std::vector<std::string> clients;
  for (const std::string& each : opened) {
    if (each.find("a.py (process 42)") != each.npos) clients.push_back(each);
  }
  REQUIRE(clients.size() == 2);
  CHECK(clients[0].find("50.0 %") != clients[0].npos);
  CHECK(clients[1].find("25.0 %") != clients[1].npos);
}

TEST_CASE("command: a page of another form is added up without figures, and one alone is itself") {
  const auto odd = boost::json::parse(
      R"({"host":7,"feeds":[{"name":"train","rates":[],"slots":{"free":"x"},"stages":{"a":3},
          "subscribers":[1],"making":2},5]})");
  const auto page = merged({{"http://a", odd, {}}, {"http://b", odd, {}}});
  TopModel model = model_of(page);
  CHECK(has(texts(model, kWide), "> train"));
  CHECK(has(open_page(model), "Hosts"));
  CHECK(merged({{"http://a", odd, {}}}) == odd);
}
