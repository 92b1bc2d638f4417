#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/stats/stats.h"
#include "tests/stats/reference.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// What is logged while it lives, one line an event: level and message.
class Logged {
 public:
  Logged() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(logger);
  }
  ~Logged() { spdlog::set_default_logger(before_); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace

TEST_CASE("stats: every event has a name of its own and a line") {
  std::set<std::string_view> names;
  for (const EventRow& row : kEventRows) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(!row.line.empty());
    CHECK(&describe(row.event) == &row);
  }
  CHECK(names.size() == kEvents);
}

TEST_CASE("stats: REFERENCE.md has the table of all events") {
  const auto mark = [](Pace pace) {
    return pace == Pace::each ? "" : pace == Pace::limited ? " *" : " **";
  };
  std::string table = "| event | level | line |\n| --- | --- | --- |\n";
  for (const EventRow& row : kEventRows) {
    table += fmt::format("| `{}` | {}{} | `{}` |\n", row.name, name_of(row.severity),
                         mark(row.pace), row.line);
  }
  check_reference("events", table);
}

TEST_CASE("stats: noting an event counts it and writes its line at its level") {
  const Logged logged;
  EventLog log;
  log.note<Event::client_gone>(0xabU, "trainer", 42, "it says Bye");
  log.note<Event::feed_failed>(wire::EventT{}, "train", "no data");
  log.note<Event::epoch_began>(wire::EventT{}, "train", 3);
  CHECK(logged.text() ==
        "info session ab: trainer (pid 42) ends: it says Bye\n"
        "error feed train failed: no data\n"
        "debug feed train: epoch 3 begins\n");
  CHECK(log.get(Event::client_gone) == 1);
  CHECK(log.get(Event::client_connected) == 0);
}

TEST_CASE("stats: every event that clients can be told of has one row") {
  for (const wire::EventKind kind : wire::EnumValuesEventKind()) {
    CAPTURE(wire::EnumNameEventKind(kind));
    CHECK(std::count_if(kEventRows.begin(), kEventRows.end(), [kind](const EventRow& row) {
            return row.told && row.told->kind == kind;
          }) == 1);
  }
}

TEST_CASE("stats: clients are told of an event by the call that notes it, with all but its kind") {
  const Logged logged;
  EventLog log;
  wire::EventT about;
  about.feed = "train";
  about.epoch = 3;
  log.note<Event::epoch_began>(about, "train", 3);  // nothing takes it yet
  std::vector<wire::EventT> told;
  log.on_told([&told](wire::EventT event) { told.push_back(std::move(event)); });
  log.note<Event::epoch_ended>(about, "train", 3);
  log.note<Event::epoch_planned_late>("train", 4);
  REQUIRE(told.size() == 1);
  CHECK(told[0].kind == wire::EventKind::epoch_ended);
  CHECK(told[0].feed == "train");
  CHECK(told[0].epoch == 3);
  CHECK(log.get(Event::epoch_ended) == 1);
  CHECK(logged.text() ==
        "debug feed train: epoch 3 begins\n"
        "debug feed train: epoch 3 ends for the first subscriber\n"
        "info feed train: epoch 4 is planned\n");
}

TEST_CASE("stats: what is told later is neither counted nor logged again") {
  const Logged logged;
  EventLog log;
  std::vector<wire::EventKind> told;
  log.on_told([&told](const wire::EventT& event) { told.push_back(event.kind); });
  log.note<Event::client_connected>(0xabU, "trainer", 42, "");
  CHECK(told.empty());
  log.tell_later<Event::client_connected>({});
  CHECK(told == std::vector{wire::EventKind::client_joined});
  CHECK(log.get(Event::client_connected) == 1);
  CHECK(logged.text() == "info session ab: trainer (pid 42) connects\n");
}

TEST_CASE("stats: what others can cause at will is counted each time and logged once a second") {
  const Logged logged;
  EventLog::Clock::time_point now{};
  EventLog log([&now] { return now; });
  for (int i = 0; i < 5; ++i) log.note<Event::client_refused>("too many");
  log.note<Event::key_refused>("10.0.0.1", "key");
  now += std::chrono::seconds(1);
  log.note<Event::client_refused>("too many");
  CHECK(log.get(Event::client_refused) == 6);
  CHECK(logged.text() ==
        "warning a client is refused: too many\n"
        "warning a client at 10.0.0.1 is refused: its key is not in authorized_keys_file: key\n"
        "warning a client is refused: too many (4 more)\n");
}

TEST_CASE("stats: a turn of the loop that is long is noted with what it did last") {
  const Logged logged;
  EventLog::Clock::time_point now{};
  EventLog log([&now] { return now; });
  {
    const EventLog::Turn turn(log, "messages");
    now += LoopTurns::kLong / 2;
    const EventLog::Turn part(log, "Subscribe");
    now += LoopTurns::kLong / 2 - std::chrono::milliseconds(1);
  }
  CHECK(log.get(Event::long_turn) == 0);
  {
    const EventLog::Turn turn(log, "turn", "train", now);
    { const EventLog::Turn part(log, "BatchReady", "train"); }
    now += LoopTurns::kLong;
  }
  { const EventLog::Turn turn(log, "a page"); }
  CHECK(log.get(Event::long_turn) == 1);
  CHECK(logged.text() ==
        "warning the event loop served no client for 20 ms, in one turn: BatchReady of feed train, "
        "the last of 2 parts\n");
}

TEST_CASE("stats: the longest turn is seen for a minute, and for no more than two") {
  using std::chrono::seconds;
  constexpr std::chrono::duration<double> kNone{0.0};
  LoopTurns::Time now{std::chrono::hours(1)};
  LoopTurns turns;
  const auto take = [&](seconds length) {
    turns.begin("a page", {});
    turns.begin_at(now);
    now += length;
    REQUIRE(turns.end());
    CHECK(turns.end_at(now) == length);
  };
  CHECK(turns.longest(now) == kNone);
  take(seconds(3));
  take(seconds(1));
  CHECK(turns.longest(now) == seconds(3));
  CHECK(turns.longest(now + seconds(58)) == seconds(3));
  CHECK(turns.longest(now + seconds(200)) == kNone);
  now += seconds(58);
  take(seconds(2));  // it ends in the next minute
  CHECK(turns.longest(now) == seconds(3));
  now += seconds(60);
  take(seconds(1));
  CHECK(turns.longest(now) == seconds(2));
  CHECK(turns.longest(now + seconds(60)) == seconds(1));
  now += seconds(200);
  take(seconds(1));
  CHECK(turns.longest(now) == seconds(1));
}

TEST_CASE("stats: braces in what is told stay as they are") {
  const Logged logged;
  EventLog log;
  log.note<Event::feed_failed>(wire::EventT{}, "train", "{} {0} %v");
  CHECK(logged.text() == "error feed train failed: {} {0} %v\n");
}

TEST_CASE("stats: a line knows its event, and the feed and session that it speaks of") {
  static_assert(place_behind("feed {}: session {:x} waits", "feed ") == 0);
  static_assert(place_behind("feed {}: session {:x} waits", "session ") == 1);
  static_assert(place_behind("feed {}: session {:x} waits", "client ") == -1);
  CHECK(fields_of_line() == nullptr);
}
