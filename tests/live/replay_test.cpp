#include <doctest/doctest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <string>

#include "daemon/live/live.h"

using namespace batchwright;

namespace {

namespace json = boost::json;

std::string refusal(const char* text) {
  const auto replayed = replay_live_cases(json::parse(text));
  return replayed ? "" : replayed.error().message;
}

/// Without the texts of refusals, which are for people.
json::value comparable(json::value result) {
  json::object& all = result.as_object();
  if (all.contains("refused")) return "refused";
  for (json::value& each : all.at("answers").as_array()) {
    json::object& answer = each.as_object();
    if (answer.at("answer") == "refused") answer.erase("why");
  }
  return result;
}

/// The names of cases with other results than they expect.
std::string differing(const json::array& cases) {
  const auto replayed = replay_live_cases(cases);
  if (!replayed) return replayed.error().message;
  std::string names;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const json::object& given = cases[i].as_object();
    const auto& got = replayed->as_array().at(i).as_object().at("expect");
    if (comparable(got) == comparable(given.at("expect"))) continue;
    names += std::string(given.at("name").as_string()) + " ";
  }
  return names;
}

}  // namespace

TEST_CASE("live: every case leads to the steps, answers and outcomes that it expects") {
  const auto text = file_text(BATCHWRIGHT_SOURCE "/tests/live/data/cases.json");
  REQUIRE(text);
  const json::value cases = json::parse(*text);
  REQUIRE(cases.as_array().size() == 82);
  CHECK(differing(cases.as_array()) == "");
}

TEST_CASE("live: one case is replayed to one") {
  const auto replayed = replay_live_cases(
      json::parse(R"({"settings": {"step": {"sequences": 2}}, "log": [{"at": 3, "do": "end"}]})"));
  REQUIRE(replayed);
  CHECK(replayed->at("expect") == json::parse(R"({"steps": [], "answers": [], "dropped": [],
    "outcomes": {}, "refused_full": {}, "duplicates": {}})"));
}

TEST_CASE("live: settings that could not work are a result, with the key") {
  const auto refused = [](const char* settings) {
    const auto replayed = replay_live_cases(
        json::object{{"settings", json::parse(settings)}, {"log", json::array()}});
    REQUIRE(replayed);
    return std::string(replayed->at("expect").at("refused").as_string());
  };
  CHECK(refused(R"({"step": {"sequences": 2000}})") ==
        "live.pool_sequences = 1024; allowed: 2000 and up, for a step");
  CHECK(refused(R"({"step": {"rows": 2}})") ==
        R"(live.step = {"rows":2}; allowed: {"sequences": N}, {"groups": N}, {"frames": N} or )"
        R"({"lanes": N, "unroll": U})");
  CHECK(refused(R"({"step": {"lanes": 2}})") == "live.step.unroll = 0; allowed: 1 to 2147483647");
  CHECK(refused(R"({"world": -1})") == "live.world = -1; allowed: a whole number from 0");
  CHECK(refused(R"({"stale": "later"})") == R"(live.stale = "later"; allowed: pace drop zero)");
  CHECK(refused(R"({"stael": "drop"})").starts_with("live.stael is no setting; allowed: step "));
}

TEST_CASE("live: a log that is none is refused with the event and the member") {
  CHECK(refusal("[1]") == "case 0: a case is an object with settings, an object, and log, a list");
  CHECK(refusal(R"({"settings": {}, "log": [7]})") == "log[0]: it is no object");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "wait"}]})") ==
        "log[0]: do = \"wait\"; allowed: push claim abandon gone advance take release limits end "
        "time");
  CHECK(refusal(R"({"settings": {}, "log": [{"do": "end"}]})") ==
        "log[0]: at = nothing; allowed: a whole number from 0 to 2^62");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 2, "do": "end"}, {"at": 1, "do": "end"}]})") ==
        "log[1]: at = 1; allowed: 2 and up, as times do not fall");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "push", "producer": "a", "number": 0,
                   "lengths": [], "version": 0}]})") ==
        "log[0]: lengths = []; allowed: a list of whole numbers");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "limits"}]})") ==
        "log[0]: limits without settings, an object");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "limits", "settings": {"seed": 2}}]})")
            .starts_with("log[0]: live.seed is no setting; allowed: window max_length "));
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "limits",
                   "settings": {"pool_sequences": 4}}]})") ==
        "log[0]: live.pool_sequences = 4; allowed: 16 and up, for a step");
  CHECK(refusal(R"({"settings": {}, "log": [{"at": 1, "do": "take", "trainer": 4}]})") ==
        "log[0]: trainer = 4; allowed: a text");
}
