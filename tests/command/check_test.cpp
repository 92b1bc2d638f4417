#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/daemon_process.h"
#include "tests/support/process.h"
#include "tests/support/small_dataset.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Finished check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {program("batchwright"), "check"});
  return run(arguments);
}

/// A daemon of 60 sequences whose feed has these settings besides.
std::unique_ptr<DaemonProcess> serving(const std::string& plan, std::size_t sequences = 60) {
  auto daemon =
      std::make_unique<DaemonProcess>("slots = 4\n[feed.plan]\nsize = 4\n" + plan, sequences);
  REQUIRE(daemon->start());
  return daemon;
}

}  // namespace

TEST_CASE("command: check says that daemons agree, and asks for no slot") {
  const auto first = serving("");
  const auto second = serving("");
  const Finished done = check({first->endpoint(), second->endpoint()});
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(contains(done.out,
                 "feed \"train\": 2 of 2 daemons have 60 sequences, 15 steps in epoch 0, "
                 "world 1, fingerprint "));
  CHECK(done.err.empty());
  const Finished shown = check({first->endpoint(), second->endpoint(), "--json", "--epoch", "3"});
  const auto told = boost::json::parse(shown.out);
  CHECK(told.at("agree").as_bool());
  CHECK(told.at("daemons").as_array()[1].at("feeds").at("train").at("steps").to_number<int>() ==
        15);
}

TEST_CASE("command: check names a feed that a daemon cannot serve, with its reason, and fails") {
  const auto sound = serving("");
  const auto broken = serving("", 0);  // it has no dataset
  const std::string line = "batchwright: " + broken->endpoint() + ": feed \"train\": not served: ";
  for (const auto& daemons :
       {std::vector{broken->endpoint()}, std::vector{sound->endpoint(), broken->endpoint()}}) {
    const Finished done = check(daemons);
    CHECK(done.code == 1);
    CHECK_MESSAGE(contains(done.err, line), done.err);
    CHECK(contains(done.err, "does not exist"));
  }
  const Finished shown = check({broken->endpoint(), "--json"});
  const auto told = boost::json::parse(shown.out);
  CHECK(!told.at("agree").as_bool());
  CHECK(told.at("faults").at(0).at("feed") == "train");
  CHECK(check({broken->endpoint(), "--feed", "train"}).code == 1);
}

TEST_CASE("command: check names the daemon that differs, the part, and both values") {
  const auto first = serving("");
  const auto second = serving("");
  const auto reseeded = serving("seed = 7\n");
  const auto resized = serving("max_length = 49\n");
  const auto shorter = serving("", 59);
  struct Case {
    const DaemonProcess& other;
    std::string what;
  };
  const std::string at = " at " + first->endpoint() + ", ";
  for (const auto& [other, what] :
       {Case{*reseeded, "seed: 0" + at + "7 here"},
        Case{*resized, "max_length: not set" + at + "49 here"},
        Case{*shorter, "data differ (60 sequences" + at + "59 here)"}}) {
    // Named wherever it stands: two of three agree.
    const std::string line = "batchwright: " + other.endpoint() + ": feed \"train\": " + what;
    for (const auto& daemons :
         {std::vector{first->endpoint(), second->endpoint(), other.endpoint()},
          std::vector{other.endpoint(), first->endpoint(), second->endpoint()}}) {
      const Finished done = check(daemons);
      CHECK(done.code == 1);
      CHECK_MESSAGE(contains(done.err, line), done.err);
      CHECK(contains(done.out, "2 of 3 daemons have 60 sequences"));
    }
  }
  const Finished shown =
      check({first->endpoint(), second->endpoint(), shorter->endpoint(), "--json"});
  const auto told = boost::json::parse(shown.out);
  CHECK(!told.at("agree").as_bool());
  CHECK(told.at("faults").as_array().size() == 1);
  CHECK(told.at("faults").as_array()[0].at("daemon").as_string() == shorter->endpoint());
}

TEST_CASE(
    "command: check names feeds that are missing, daemons that are down, and wrong addresses") {
  const auto daemon = serving("");
  const std::string down = "ipc://" + (daemon->folder() / "none").string();
  const Finished done = check({daemon->endpoint(), down, "--timeout", "200ms"});
  CHECK(done.code == 1);
  CHECK_MESSAGE(contains(done.err, "batchwright: " + down + ": "), done.err);
  CHECK(contains(done.out, "1 of 2 daemons"));
  const Finished feed = check({daemon->endpoint(), "--feed", "dev"});
  CHECK(feed.code == 1);
  CHECK_MESSAGE(contains(feed.err, daemon->endpoint() + ": feed \"dev\": is not served"), feed.err);
  const Finished wrong = check({"nothing", "--timeout", "200ms"});
  CHECK(wrong.code == 1);
  CHECK_MESSAGE(contains(wrong.err, "batchwright: nothing: "), wrong.err);
}
