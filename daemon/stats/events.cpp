#include "daemon/stats/events.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace batchwright {
namespace {

/// Pace::limited: a line a second, so that no peer fills the log.
constexpr std::chrono::seconds kPace{1};
/// Pace::bursts: the lines that come at once when all trainers of a job start or end.
constexpr std::int64_t kBurst = 100;

constexpr bool in_order() {
  for (std::size_t i = 0; i < kEvents; ++i) {
    if (static_cast<std::size_t>(kEventRows[i].event) != i) return false;
  }
  return true;
}
static_assert(in_order(), "one row for each event, in the order of the enumeration");

spdlog::level::level_enum level_of(Severity severity) {
  switch (severity) {
    case Severity::debug: return spdlog::level::debug;
    case Severity::info: return spdlog::level::info;
    case Severity::warning: return spdlog::level::warn;
    case Severity::error: return spdlog::level::err;
    case Severity::critical: return spdlog::level::critical;
  }
  return spdlog::level::err;
}

/// The logger formats a line on the thread that logs it, within the call.
thread_local const EventFields* line_fields = nullptr;

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::debug: return "debug";
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
    case Severity::critical: return "critical";
  }
  return "unknown";
}

void log_from(Severity least) { spdlog::default_logger_raw()->set_level(level_of(least)); }

EventLog::EventLog(std::function<Clock::time_point()> clock) : clock_(std::move(clock)) {
  for (const EventRow& row : kEventRows) {
    limits_.emplace_back(kPace, row.pace == Pace::bursts ? kBurst : 1);
  }
}

bool EventLog::count(Event event) {
  const auto i = static_cast<std::size_t>(event);
  // Counted in any case: the limit is the log's, and /metrics shows every event.
  ++counts_[i];
  left_out_ = 0;
  if (kEventRows[i].pace == Pace::each) return true;
  const auto left_out = limits_[i].ask(clock_());
  left_out_ = left_out.value_or(0);
  return left_out.has_value();
}

void EventLog::end_turn() noexcept {
  const auto took = turns_.end_at(clock_());
  if (took < LoopTurns::kLong) return;
  static_cast<void>(as_result(ErrorCode::internal, "", [&]() -> Result<void> {
    note<Event::long_turn>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count(),
                           turns_.describe());
    return {};
  }));
}

void EventLog::tell(const Told& told, wire::EventT about) {
  about.kind = told.kind;
  if (listener_) listener_(std::move(about));
}

const EventFields* fields_of_line() { return line_fields; }

void EventLog::write(Event event, const EventFields& fields, std::string text) {
  // The number belongs to the lines of this event that the limit held back before this one.
  if (left_out_ != 0) text += fmt::format(" ({} more)", left_out_);
  // Set for the time of the call: the log's JSON format asks for it by fields_of_line().
  line_fields = &fields;
  spdlog::log(level_of(describe(event).severity), "{}", text);
  line_fields = nullptr;
  // These come with each epoch, and would push the others out of the few that are kept.
  if (describe(event).severity == Severity::debug) return;
  if (latest_.size() == kKept) latest_.pop_front();
  latest_.push_back({event, std::chrono::system_clock::now(), std::move(text)});
}

}  // namespace batchwright
