// Cases of live feeds as JSON, replayed: what a log leads to follows from it alone.

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "daemon/live/live.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

namespace json = boost::json;

/// A rank without a row gets another's at the end: so many are a question of memory alone.
constexpr double kMostRanks = 64;

bool has_few_ranks(const json::value& given) {
  if (const auto* list = given.if_array()) {
    for (const json::value& each : *list) {
      if (!has_few_ranks(each)) return false;
    }
    return true;
  }
  const auto* object = given.if_object();
  const auto* settings = object != nullptr ? object->if_contains("settings") : nullptr;
  const auto* own = settings != nullptr ? settings->if_object() : nullptr;
  const auto* world = own != nullptr ? own->if_contains("world") : nullptr;
  return world == nullptr || !world->is_number() || world->to_number<double>() <= kMostRanks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  boost::system::error_code bad;
  const json::value given =
      json::parse(json::string_view(reinterpret_cast<const char*>(data), size), bad);
  if (bad || !has_few_ranks(given)) return 0;
  const auto replayed = replay_live_cases(given);
  if (!replayed) {
    require(replayed.error().code == ErrorCode::invalid_argument, "a bad case is invalid_argument");
    require(!replayed.error().message.empty(), "what is wrong with a case is told");
    return 0;
  }
  const auto again = replay_live_cases(*replayed);
  require(again && *again == *replayed, "the same log leads to the same");
  return 0;
}
