#include <fmt/core.h>
#include <fmt/ranges.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/live/replay/read_case.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// Those cuts of the planner that a live feed has.
constexpr LiveWord<Cut> kCuts[] = {
    {"fixed", Cut::fixed}, {"dynamic", Cut::dynamic}, {"quadratic", Cut::quadratic}};

Error wrong_value(std::string_view key, const json::value& found, std::string_view allowed) {
  return {ErrorCode::bad_configuration,
          fmt::format("live.{} = {}; allowed: {}", key, json::serialize(found), allowed)};
}

std::optional<std::uint64_t> whole(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) {
    return static_cast<std::uint64_t>(value.get_int64());
  }
  return std::nullopt;
}

/// A key: what it is called, what it may be, and where its value goes. Returns false for another
/// value than that.
struct Key {
  std::string_view name;
  std::string allowed;
  std::function<bool(const json::value&)> read;
};

Key number(std::string_view name, std::uint64_t& into) {
  return {name, "a whole number from 0", [&into](const json::value& value) {
            const auto found = whole(value);
            if (found) into = *found;
            return found.has_value();
          }};
}

Key number(std::string_view name, std::optional<std::uint64_t>& into) {
  return {name, "a whole number from 0, or null", [&into](const json::value& value) {
            into = whole(value);
            return into || value.is_null();
          }};
}

template <class Value>
Key word(std::string_view name, Value& into, std::span<const LiveWord<Value>> words) {
  std::vector<std::string_view> names;
  for (const auto& each : words) names.push_back(each.first);
  return {name, fmt::format("{}", fmt::join(names, " ")), [&into, words](const json::value& value) {
            for (const auto& [text, meaning] : words) {
              if (!value.is_string() || std::string_view(value.get_string()) != text) continue;
              into = meaning;
              return true;
            }
            return false;
          }};
}

bool read_step(const json::value& value, LiveSettings& into) {
  if (!value.is_object()) return false;
  json::object members = value.get_object();
  if (members.contains("lanes") && members.contains("unroll")) {
    const auto unroll = whole(members["unroll"]);
    if (!unroll) return false;
    into.unroll = *unroll;
    members.erase("unroll");
  }
  if (members.size() != 1) return false;
  const auto& [unit, budget] = *members.begin();
  const auto found = whole(budget);
  if (!found) return false;
  into.step = *found;
  for (const auto& [name, meaning] : kStepUnits) {
    if (std::string_view(unit) != name) continue;
    into.step_unit = meaning;
    return true;
  }
  return false;
}

bool read_frame_bytes(const json::value& value, std::vector<std::uint64_t>& into) {
  if (!value.is_array()) return false;
  into.clear();
  for (const json::value& each : value.get_array()) {
    const auto bytes = whole(each);
    if (!bytes) return false;
    into.push_back(*bytes);
  }
  return true;
}

std::vector<Key> limit_keys(LiveLimits& s) {
  return {
      number("window", s.window),
      number("max_length", s.max_length),
      number("linger", s.linger_ms),
      number("group_timeout", s.group_timeout_ms),
      word<LateGroups>("late_groups", s.late_groups, kLateGroups),
      number("max_staleness", s.max_staleness),
      word<StalePolicy>("stale", s.stale, kStalePolicies),
      number("claim_timeout", s.claim_timeout_ms),
      number("zero_most_stale", s.zero_most_stale),
      number("reuse", s.reuse),
      {"fresh_share", "a number from 0 to 1, or null",
       [&s](const json::value& value) {
         s.fresh_share.reset();
         if (value.is_number()) s.fresh_share = value.to_number<double>();
         return value.is_number() || value.is_null();
       }},
      number("pool_sequences", s.pool_sequences),
  };
}

std::vector<Key> keys_of(LiveSettings& s) {
  std::vector<Key> keys{
      {"step",
       "{\"sequences\": N}, {\"groups\": N}, {\"frames\": N} or {\"lanes\": N, \"unroll\": U}",
       [&s](const json::value& value) { return read_step(value, s); }},
      number("world", s.world),
      word<Cut>("cut", s.cut, kCuts),
      number("quadratic_scale", s.quadratic_scale),
      word<LiveGroups>("groups", s.groups, kLiveGroups),
      word<LiveSelect>("select", s.select, kLiveSelects),
      number("pool_bytes", s.pool_bytes),
      {"frame_bytes", "a list of whole numbers",
       [&s](const json::value& value) { return read_frame_bytes(value, s.frame_bytes); }},
      number("seed", s.seed),
  };
  std::vector<Key> limits = limit_keys(s);
  std::move(limits.begin(), limits.end(), std::back_inserter(keys));
  return keys;
}

Result<void> read_keys(const json::object& given, const std::vector<Key>& keys) {
  for (const auto& [name, value] : given) {
    const Key* known = nullptr;
    std::vector<std::string_view> names;
    for (const Key& key : keys) {
      names.push_back(key.name);
      if (key.name == std::string_view(name)) known = &key;
    }
    if (known == nullptr) {
      return Error{ErrorCode::bad_configuration,
                   fmt::format("live.{} is no setting; allowed: {}", printable(std::string(name)),
                               fmt::join(names, " "))};
    }
    if (!known->read(value)) return wrong_value(known->name, value, known->allowed);
  }
  return {};
}

}  // namespace

Result<LiveSettings> read_live_settings(const json::object& given) {
  LiveSettings settings;
  if (auto read = read_keys(given, keys_of(settings)); !read) return read.error();
  return settings;
}

Result<void> read_live_limits(const json::object& given, LiveSettings& settings) {
  return read_keys(given, limit_keys(settings));
}

}  // namespace batchwright
