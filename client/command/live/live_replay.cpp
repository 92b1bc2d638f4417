#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <string>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/output.h"
#include "daemon/live/live.h"

namespace batchwright {
namespace {

namespace json = boost::json;

Result<json::value> read_cases(const std::filesystem::path& path) {
  const auto text = file_text(path);
  if (!text) return text.error();
  json::error_code failed;
  auto cases = json::parse(*text, failed);
  if (!failed) return cases;
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is no JSON: {}", path.string(), failed.message())};
}

/// The sequences of each state, as "12 done, 3 waiting".
std::string counted_states(const json::object& outcomes) {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [producer, states] : outcomes) {
    for (const json::value& state : states.get_array()) ++counts[state.get_string().c_str()];
  }
  std::string text;
  for (const auto& [state, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  }
  return text.empty() ? "no sequence" : text;
}

void print_case(const json::object& replayed, std::size_t number) {
  const json::value* const name = replayed.if_contains("name");
  const json::object& result = replayed.at("expect").get_object();
  fmt::print("case       {}\n", name != nullptr && name->is_string()
                                    ? printable(name->get_string().c_str())
                                    : std::to_string(number));
  if (const json::value* const refused = result.if_contains("refused")) {
    fmt::print("refused    {}\n", refused->get_string().c_str());
    return;
  }
  fmt::print("sequences  {}\n", counted_states(result.at("outcomes").get_object()));
  for (const json::value& step : result.at("steps").get_array()) {
    std::size_t rows = 0;
    for (const json::value& batch : step.at("batches").get_array())
      rows += batch.get_array().size();
    fmt::print("step       {}: {} at {} ms, version {}, {} batches of {} rows, {} zeroed\n",
               step.at("step").get_uint64(), step.at("why").get_string().c_str(),
               step.at("at").get_uint64(), step.at("version").get_uint64(),
               step.at("batches").get_array().size(), rows, step.at("zeroed").get_array().size());
  }
}

}  // namespace

int run_live_replay(const LiveReplayOptions& options) {
  const auto cases = read_cases(options.file);
  if (!cases) return fail(cases.error());
  const auto replayed = replay_live_cases(*cases);
  if (!replayed) {
    return fail({replayed.error().code,
                 fmt::format("{}: {}", options.file.string(), replayed.error().message)});
  }
  if (options.json) {
    print_json_line(*replayed);
  } else if (replayed->is_object()) {
    print_case(replayed->get_object(), 0);
  } else {
    std::size_t number = 0;
    for (const json::value& each : replayed->get_array()) print_case(each.get_object(), number++);
  }
  return kDone;
}

}  // namespace batchwright
