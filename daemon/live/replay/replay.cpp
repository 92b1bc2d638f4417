#include "daemon/live/replay/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "daemon/live/live_pool.h"
#include "daemon/live/replay/read_case.h"

namespace batchwright {
namespace {

namespace json = boost::json;

constexpr std::string_view kReasons[] = {"full", "end", "pool", "linger", "starved"};
constexpr std::string_view kStates[] = {"waiting", "delivered", "done", "dropped_stale",
                                        "abandoned"};
constexpr std::string_view kAnswers[] = {"accepted",  "duplicate", "refused", "granted",
                                         "timed_out", "ended",     "step",    "end"};

template <std::size_t N, class Value>
json::string_view name_of(const std::string_view (&names)[N], Value value) {
  return {names[static_cast<std::size_t>(value)].data(),
          names[static_cast<std::size_t>(value)].size()};
}

/// What a log leads to, as JSON.
class CaseResult {
 public:
  CaseResult(const NameNumbers& producers, bool lanes) : producers_(producers), lanes_(lanes) {}

  /// A push was logged: its producer has outcomes from then on.
  void note_push(const LivePush& push, std::uint64_t event) {
    Producer& producer = outcomes(push.producer);
    producer.pushes = true;
    if (pushed_by_.size() <= event) pushed_by_.resize(event + 1, kNone);
    pushed_by_[event] = push.producer;
  }

  void take(LiveResults& results) {
    for (const LiveAnswer& answer : results.answers) add(answer);
    for (const LiveStep& step : results.steps) steps_.push_back(step_json(step));
    for (const LiveChange& change : results.changes) add(change);
    results = {};
  }

  json::object all() {
    json::object states, full, duplicates;
    for (std::size_t id = 0; id < of_.size(); ++id) {
      Producer& producer = of_[id];
      const std::string& name = producers_.names()[id];
      if (producer.pushes) states[name] = std::move(producer.states);
      if (producer.full != 0) full[name] = producer.full;
      if (producer.duplicates != 0) duplicates[name] = producer.duplicates;
    }
    return {{"steps", std::move(steps_)},      {"answers", std::move(answers_)},
            {"dropped", std::move(dropped_)},  {"outcomes", std::move(states)},
            {"refused_full", std::move(full)}, {"duplicates", std::move(duplicates)}};
  }

 private:
  static constexpr ProducerId kNone = 0xFFFFFFFF;

  struct Producer {
    bool pushes = false;
    json::array states;  ///< Of its numbers.
    std::uint64_t full = 0;
    std::uint64_t duplicates = 0;
  };

  Producer& outcomes(ProducerId id) {
    if (id >= of_.size()) of_.resize(std::size_t{id} + 1);
    return of_[id];
  }

  json::value row_name(const LiveRow& row) const {
    if (row.frames == 0) return nullptr;
    return json::array{json::string(producers_.names()[row.producer]), row.number};
  }

  json::object step_json(const LiveStep& step) const {
    json::array batches, weights, staleness, zeroed, filler, starts, lengths, flags;
    for (std::size_t rank = 0; rank < step.batches.size(); ++rank) {
      json::array names, row_weights, row_staleness, row_starts, row_lengths, row_flags;
      for (const LiveRow& row : step.batches[rank]) {
        if (row.zeroed) zeroed.push_back(row_name(row));
        if (row.filler) filler.push_back(json::array{rank, names.size()});
        names.push_back(row_name(row));
        row_weights.push_back(row.weight);
        row_staleness.push_back(row.staleness);
        row_starts.push_back(row.start);
        row_lengths.push_back(row.frames);
        row_flags.push_back(row.frames == 0 ? 0 : (row.reset ? 1 : 0) + (row.last ? 2 : 0));
      }
      batches.push_back(std::move(names));
      weights.push_back(std::move(row_weights));
      staleness.push_back(std::move(row_staleness));
      starts.push_back(std::move(row_starts));
      lengths.push_back(std::move(row_lengths));
      flags.push_back(std::move(row_flags));
    }
    json::object shown{{"step", step.step},
                       {"at", step.at_ms},
                       {"after", step.after},
                       {"version", step.version},
                       {"why", name_of(kReasons, step.why)},
                       {"batches", std::move(batches)},
                       {"weights", std::move(weights)},
                       {"staleness", std::move(staleness)},
                       {"zeroed", std::move(zeroed)},
                       {"filler", std::move(filler)}};
    if (!lanes_) return shown;
    shown["starts"] = std::move(starts);
    shown["lengths"] = std::move(lengths);
    shown["flags"] = std::move(flags);
    return shown;
  }

  void add(const LiveAnswer& answer) {
    using Kind = LiveAnswer::Kind;
    json::object shown{
        {"event", answer.event}, {"at", answer.at_ms}, {"answer", name_of(kAnswers, answer.kind)}};
    if (answer.kind == Kind::granted) shown["version"] = answer.value;
    if (answer.kind == Kind::step) shown["step"] = answer.value;
    if (answer.kind == Kind::refused || answer.kind == Kind::timed_out) shown["why"] = answer.why;
    answers_.push_back(std::move(shown));
    const bool push = answer.event < pushed_by_.size() && pushed_by_[answer.event] != kNone;
    if (!push) return;
    Producer& producer = outcomes(pushed_by_[answer.event]);
    producer.full += answer.kind == Kind::timed_out ? 1 : 0;
    producer.duplicates += answer.kind == Kind::duplicate ? 1 : 0;
  }

  void add(const LiveChange& change) {
    json::array& states = outcomes(change.producer).states;
    must(change.number <= states.size(), "a producer's sequences are accepted one by one");
    if (change.number == states.size()) states.emplace_back(nullptr);
    states[change.number] = name_of(kStates, change.state);
    if (change.state != SequenceState::dropped_stale && change.state != SequenceState::abandoned) {
      return;
    }
    dropped_.push_back(
        json::object{{"producer", producers_.names()[change.producer]},
                     {"number", change.number},
                     {"at", change.at_ms},
                     {"outcome", name_of(kStates, change.state)},
                     {"why", json::string_view(change.why.data(), change.why.size())}});
  }

  const NameNumbers& producers_;
  const bool lanes_;  ///< Rows are parts of sequences.
  std::vector<Producer> of_;
  std::vector<ProducerId> pushed_by_;  ///< By event.
  json::array steps_, answers_, dropped_;
};

Error at_event(std::size_t event, const std::string& message) {
  return {ErrorCode::invalid_argument, fmt::format("log[{}]: {}", event, message)};
}

/// `given` are the settings without what follows from them.
Result<json::object> replay_log(LiveSettings given, const LiveSettings& checked,
                                const json::array& log) {
  NameNumbers producers, trainers;
  CaseResult result(producers, checked.step_unit == StepUnit::lanes);
  LivePool pool(checked);
  LiveResults results;
  std::uint64_t now_ms = 0;
  for (std::size_t event = 0; event < log.size(); ++event) {
    if (!log[event].is_object()) return at_event(event, "it is no object");
    const auto logged = read_live_event(log[event].get_object(), given, producers, trainers);
    if (!logged) return at_event(event, logged.error().message);
    if (logged->at_ms < now_ms) {
      return at_event(event, fmt::format("at = {}; allowed: {} and up, as times do not fall",
                                         logged->at_ms, now_ms));
    }
    now_ms = logged->at_ms;
    if (const auto* push = std::get_if<LivePush>(&logged->event)) result.note_push(*push, event);
    pool.on(logged->event, now_ms, results);
    result.take(results);
  }
  return result.all();
}

Result<json::object> replay_case(const json::value& given) {
  const auto* const object = given.if_object();
  const auto* const settings = object != nullptr ? object->if_contains("settings") : nullptr;
  const auto* const log = object != nullptr ? object->if_contains("log") : nullptr;
  if (settings == nullptr || log == nullptr || !settings->is_object() || !log->is_array()) {
    return Error{ErrorCode::invalid_argument,
                 "a case is an object with settings, an object, and log, a list"};
  }
  json::object replayed = *object;
  const auto read = read_live_settings(settings->get_object());
  const auto checked = read ? check_live_settings(*read) : read;
  if (!checked) {
    replayed["expect"] = json::object{{"refused", checked.error().message}};
    return replayed;
  }
  auto result = replay_log(*read, *checked, log->get_array());
  if (!result) return result.error();
  replayed["expect"] = *std::move(result);
  return replayed;
}

}  // namespace

Result<json::value> replay_live_cases(const json::value& cases) {
  if (!cases.is_array()) {
    auto replayed = replay_case(cases);
    if (!replayed) return replayed.error();
    return json::value(*std::move(replayed));
  }
  json::array all;
  for (const json::value& each : cases.get_array()) {
    auto replayed = replay_case(each);
    if (!replayed) {
      return Error{replayed.error().code,
                   fmt::format("case {}: {}", all.size(), replayed.error().message)};
    }
    all.push_back(*std::move(replayed));
  }
  return json::value(std::move(all));
}

}  // namespace batchwright
