#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <limits>
#include <utility>

#include "daemon/live/replay/read_case.h"

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;

/// The members of a logged event. The first that is missing or wrong is kept as the error.
class EventMembers {
 public:
  explicit EventMembers(const json::object& event) : event_(event) {}

  const std::optional<Error>& error() const { return error_; }

  bool has(std::string_view name) const { return find(name) != nullptr; }

  std::string_view text(std::string_view name) {
    const json::value* found = find(name);
    if (found != nullptr && found->is_string()) return found->get_string();
    fail(name, found, "a text");
    return {};
  }

  std::optional<std::uint64_t> whole_or_none(std::string_view name) {
    const json::value* found = find(name);
    if (found == nullptr || found->is_null()) return std::nullopt;
    return whole_of(name, found);
  }

  std::uint64_t whole(std::string_view name) { return whole_of(name, find(name)); }

  bool flag(std::string_view name) {
    const json::value* found = find(name);
    if (found == nullptr || found->is_null()) return false;
    if (found->is_bool()) return found->get_bool();
    return whole_of(name, found) != 0;
  }

  double real_or(std::string_view name, double otherwise) {
    const json::value* found = find(name);
    if (found == nullptr) return otherwise;
    if (found->is_number()) return found->to_number<double>();
    fail(name, found, "a number");
    return otherwise;
  }

  std::vector<std::uint64_t> wholes(std::string_view name) {
    const json::value* found = find(name);
    std::vector<std::uint64_t> all;
    if (found == nullptr || !found->is_array() || found->get_array().empty()) {
      fail(name, found, "a list of whole numbers");
      return {0};
    }
    for (const json::value& each : found->get_array()) all.push_back(whole_of(name, &each));
    return all;
  }

  void fail(std::string_view name, const json::value* found, std::string_view allowed) {
    if (error_) return;
    error_ = Error{ErrorCode::invalid_argument,
                   fmt::format("{} = {}; allowed: {}", name,
                               found == nullptr ? "nothing" : json::serialize(*found), allowed)};
  }

 private:
  const json::value* find(std::string_view name) const { return event_.if_contains(name); }

  std::uint64_t whole_of(std::string_view name, const json::value* found) {
    if (found != nullptr && found->is_number()) {
      boost::json::error_code failed;
      const auto value = found->to_number<std::uint64_t>(failed);
      if (!failed && value <= kMostNumber) return value;
    }
    fail(name, found, "a whole number from 0 to 2^62");
    return 0;
  }

  const json::object& event_;
  std::optional<Error> error_;
};

LivePush read_push(EventMembers& members, const LiveSettings& settings, NameNumbers& producers) {
  LivePush push;
  push.producer = producers.number(members.text("producer"));
  push.number = members.whole("number");
  const auto lengths = members.wholes("lengths");
  push.length = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(lengths[0], std::numeric_limits<std::uint32_t>::max()));
  for (std::size_t i = 0; i < std::min(lengths.size(), settings.frame_bytes.size()); ++i) {
    push.bytes += std::min(lengths[i], std::uint64_t{1} << 30) * settings.frame_bytes[i];
  }
  push.version = members.whole("version");
  push.version_newest = members.whole_or_none("version_newest").value_or(push.version);
  push.group = members.whole_or_none("group");
  push.group_size = members.whole_or_none("group_size").value_or(0);
  push.weight = members.real_or("weight", 1.0);
  push.timeout_ms = members.whole_or_none("timeout");
  return push;
}

LiveEvent read_event(EventMembers& members, const LiveSettings& settings, NameNumbers& producers,
                     NameNumbers& trainers) {
  const std::string_view what = members.text("do");
  const auto producer = [&] { return producers.number(members.text("producer")); };
  if (what == "push") return read_push(members, settings, producers);
  if (what == "claim") {
    return LiveClaim{producer(), members.whole("count"), members.whole_or_none("timeout")};
  }
  if (what == "abandon") {
    const auto number = members.whole_or_none("number");
    if (number) return AbandonNumber{producer(), *number};
    return AbandonGroup{producer(), members.whole_or_none("group"), members.whole("count")};
  }
  if (what == "advance") {
    return LiveAdvance{members.whole("version"), members.flag("restored"), members.flag("replays")};
  }
  const auto trainer = [&] { return trainers.number(members.text("trainer")); };
  if (what == "gone") {
    if (members.has("trainer")) return TrainerGone{trainer()};
    return ProducerGone{producer()};
  }
  if (what == "take") {
    return LiveTake{trainer(), members.whole_or_none("step"), members.flag("prefetch")};
  }
  if (what == "release") return LiveRelease{trainer(), members.whole("step")};
  if (what == "end") return LiveEnd{};
  if (what == "time") return TimePassed{};
  const json::value found = json::string(what);
  members.fail("do", &found, "push claim abandon gone advance take release limits end time");
  return TimePassed{};
}

Result<LimitsChanged> read_limits(const json::object& logged, LiveSettings& settings) {
  const json::value* const given = logged.if_contains("settings");
  if (given == nullptr || !given->is_object()) {
    return Error{ErrorCode::invalid_argument, "limits without settings, an object"};
  }
  if (auto read = read_live_limits(given->get_object(), settings); !read) return read.error();
  auto checked = check_live_settings(settings);
  if (!checked) return checked.error();
  return LimitsChanged{*checked};
}

}  // namespace

std::uint32_t NameNumbers::number(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

Result<LoggedEvent> read_live_event(const json::object& logged, LiveSettings& settings,
                                    NameNumbers& producers, NameNumbers& trainers) {
  EventMembers members(logged);
  LoggedEvent read;
  read.at_ms = members.whole("at");
  if (!members.error() && members.text("do") == "limits") {
    const auto limits = read_limits(logged, settings);
    if (!limits) return limits.error();
    read.event = *limits;
    return read;
  }
  read.event = read_event(members, settings, producers, trainers);
  if (members.error()) return *members.error();
  return read;
}

}  // namespace batchwright
