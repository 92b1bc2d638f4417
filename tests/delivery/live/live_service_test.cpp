// What a live feed says of itself: requests in, at times that the test makes up.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/delivery/live/virtual_live_service.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Of a sequence of so many frames: two float32, an int32 of each, and a float32.
constexpr std::uint64_t pushed_bytes(std::uint64_t frames) { return 12 * frames + 4; }

/// A desk whose requests come at times of the test, and whose producers are numbered by session.
class TimedDesk {
 public:
  explicit TimedDesk(const FeedSettings& settings) : desk_(settings) {}

  void produce(std::uint64_t at_ms, std::uint32_t id, const std::string& name) {
    at(at_ms).produce(SessionId{id}, name);
  }
  void push(std::uint64_t at_ms, std::uint32_t id, const std::vector<Offered>& sequences,
            std::int64_t timeout_ms = -1) {
    at(at_ms).push(SessionId{id}, sequences, timeout_ms);
  }
  void claim(std::uint64_t at_ms, std::uint32_t id, std::uint32_t count,
             std::int64_t timeout_ms = -1) {
    at(at_ms).claim(SessionId{id}, count, timeout_ms);
  }
  void abandon(std::uint64_t at_ms, std::uint32_t id, std::uint64_t number) {
    wire::AbandonT abandon;
    abandon.producer = 1;
    abandon.by_number = true;
    abandon.number = number;
    at(at_ms).ask(SessionId{id}, abandon);
  }
  void advance(std::uint64_t at_ms, std::uint64_t version) {
    wire::AdvanceT advance;
    advance.version = version;
    at(at_ms).ask(SessionId{99}, advance);
  }
  void take(std::uint64_t at_ms, Step step) { at(at_ms).take(kTrainer, step.value); }
  void leave(std::uint64_t at_ms, std::uint32_t id) { at(at_ms).end_session(SessionId{id}); }
  void pass(std::uint64_t at_ms) { at(at_ms).pass(std::chrono::milliseconds(0)); }
  LiveStatus status(std::uint64_t at_ms) { return at(at_ms).status(); }

 private:
  VirtualLiveService& at(std::uint64_t ms) {
    desk_.set_time(ms);
    return desk_;
  }

  VirtualLiveService desk_;
};

using Dropped = std::array<std::uint64_t, kLiveDrops>;  // stale, late, incomplete, abandoned

}  // namespace

TEST_CASE("delivery: a live feed says how long claims have waited, and for what") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.max_staleness = 1;
  TimedDesk desk(settings);
  CHECK(desk.status(500).counts.waited.connected == 0.0);
  desk.produce(1000, 1, "a");
  desk.claim(2000, 1, 2);
  LiveStatus status = desk.status(3500);
  CHECK(status.claims_waiting == 1);
  CHECK(status.claims_wait_for == "trainer");
  CHECK(status.longest_claim->count() == 1.5);
  CHECK(status.counts.waited.claims_trainer == 1.5);
  CHECK(status.counts.waited.connected == 2.5);
  CHECK(!status.version_ago);
  CHECK(status.producers.at(0).waits_for == "claim");
  CHECK(!status.producers.at(0).pushed_ago);
  desk.advance(4000, 3);
  status = desk.status(6000);
  CHECK(status.counts.waited.claims_trainer == 2.0);
  CHECK(status.claims_waiting == 0);
  CHECK(!status.longest_claim);
  CHECK(status.claimed == 2);
  CHECK(status.producers.at(0).claimed == 2);
  CHECK(status.version == 3);
  CHECK(status.version_ago->count() == 2.0);
  desk.claim(6000, 1, 7, 1000);  // 8 may be on their way at most
  status = desk.status(6250);
  CHECK(status.claims_wait_for == "staleness");
  CHECK(status.counts.waited.claims_staleness == 0.25);
  desk.pass(7000);
  status = desk.status(9000);
  CHECK(status.counts.waited.claims_staleness == 1.0);
  CHECK(status.counts.claims_timed_out == 1);
}

TEST_CASE("delivery: a live feed says what its pool has, what it dropped and what waits for room") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.max_staleness = 1;
  settings.live->pool.pool_sequences = 6;
  TimedDesk desk(settings);
  desk.advance(0, 3);
  desk.produce(0, 1, "a");
  desk.push(5000, 1, {{0, 5, 3}, {1, 7, 3}, {2, 9, 1}});
  LiveStatus status = desk.status(6000);
  CHECK(status.counts.accepted == 3);
  CHECK(status.counts.accepted_frames == 21);
  CHECK(status.counts.dropped == Dropped{1, 0, 0, 0});
  CHECK(status.counts.mean_dropped_length() == 9.0);
  CHECK(status.counts.mean_accepted_length() == 7.0);
  CHECK(status.waiting == 2);
  CHECK(status.waiting_bytes == pushed_bytes(5) + pushed_bytes(7));
  CHECK(status.step_has == 2);
  CHECK(status.step_needs == 4);
  CHECK(status.pushed_ago->count() == 1.0);

  desk.produce(6000, 2, "b");
  desk.push(6000, 2, {{0, 3, 2}, {1, 3, 2}, {2, 3, 2}, {3, 3, 2}, {4, 3, 2}});
  status = desk.status(8000);
  CHECK(status.waiting == 6);
  CHECK(status.pushes_waiting == 1);
  CHECK(status.longest_push->count() == 2.0);
  CHECK(status.counts.waited.room == 2.0);
  CHECK(status.producers.at(0).name == "a");  // silent for longer
  CHECK(status.producers.at(1).waits_for == "room");
  CHECK(status.producers.at(1).accepted == 4);
  CHECK(status.producers.at(1).held_bytes == 4 * pushed_bytes(3));
  CHECK(status.producers.at(0).dropped == 1);
  CHECK(status.producers.at(0).held_bytes == pushed_bytes(5) + pushed_bytes(7));

  desk.take(9000, Step{0});
  status = desk.status(9000);
  CHECK(status.steps == 1);
  CHECK(status.steps_kept == 1);
  CHECK(status.in_steps == 4);
  CHECK(status.waiting == 3);
  CHECK(status.pushes_waiting == 0);
  CHECK(status.counts.waited.room == 3.0);
  CHECK(status.counts.staleness.in_range(1) == 4);  // the stalest go first
  CHECK(status.counts.staleness.sum() == 4);
}

TEST_CASE("delivery: a live feed counts what it drops by the reason, and what finds no room") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.groups = LiveGroups::step;
  settings.live->pool.late_groups = LateGroups::abandon;
  settings.live->pool.group_timeout_ms = 1000;
  settings.live->pool.pool_sequences = 4;
  TimedDesk desk(settings);
  desk.produce(0, 1, "a");
  desk.push(0, 1, {{0, 5, 0, 7, 3}});
  LiveStatus status = desk.status(400);
  CHECK(status.groups == 1);
  CHECK(status.groups_missing == 2);
  CHECK(status.oldest_group->count() == 0.4);
  CHECK(status.claimed == 2);
  desk.push(400, 1, {{1, 5}, {2, 5}}, 100);  // one has room
  desk.pass(500);
  desk.pass(1000);
  desk.push(1100, 1, {{2, 5, 0, 7, 3}});
  desk.abandon(1200, 1, 1);
  desk.push(1300, 1, {{2, 5, 0, 7, 3}});
  desk.push(1300, 1, {{3, 5, 9}});
  status = desk.status(1300);
  CHECK(status.groups == 0);
  CHECK(!status.oldest_group);
  CHECK(status.counts.dropped == Dropped{0, 1, 1, 1});
  CHECK(status.counts.pushes_timed_out == 1);
  CHECK(status.counts.pushes_refused == 1);
  CHECK(status.counts.duplicates == 1);
  CHECK(status.producers.at(0).abandoned == 3);
  CHECK(status.waiting == 0);
  CHECK(status.producers.at(0).held_bytes == 0);
}

TEST_CASE(
    "delivery: a live feed lists few of many producers, those that stand still before others") {
  constexpr std::uint32_t kAll = 100;
  TimedDesk desk(live_feed(1000));
  for (std::uint32_t id = 1; id <= kAll; ++id) {
    desk.produce(0, id, id == 50 ? "" : "actor" + std::to_string(id));
  }
  for (std::uint32_t id = kAll; id > 0; --id) {
    if (id != 50) desk.push(kAll + 1 - id, id, {{0, 1}});
  }
  LiveStatus status = desk.status(1000);
  CHECK(status.producers_connected == kAll);
  REQUIRE(status.producers.size() == LiveStatus::kMostProducers);
  CHECK(status.producers.front().name.empty());
  CHECK(status.producers.front().pid == 1050);
  CHECK(status.producers.at(1).name == "actor100");
  CHECK(status.producers.at(1).session == SessionId{100});
  for (std::uint32_t id = 11; id <= kAll; ++id) desk.leave(1000, id);
  status = desk.status(1000);
  CHECK(status.producers_connected == 10);
  CHECK(status.producers_known == kAll);
  REQUIRE(status.producers.size() == LiveStatus::kMostProducers);
  CHECK(status.producers.at(9).connected);
  CHECK(!status.producers.at(10).connected);
  CHECK(status.producers.at(10).name == "actor100");
}

TEST_CASE("delivery: other limits let in what waits, and refuse what can never be") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.pool_sequences = 4;
  VirtualLiveService desk(settings);
  REQUIRE(desk.produce(kActor, "actor"));
  REQUIRE(desk.produce(kOther, "other"));
  desk.push(kActor, {{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}});  // the last one waits
  desk.push(kOther, {{0, 60}});
  CHECK_FALSE(desk.answer<wire::Accepted>(kActor));
  LiveLimits limits = settings.live->pool;
  limits.pool_sequences = 5;
  limits.max_length = 50;
  desk.adjust(limits);
  CHECK(desk.answer<wire::Accepted>(kActor)->next == 5);
  const auto refused = desk.answer<wire::Accepted>(kOther);
  REQUIRE(refused);
  CHECK(refused->next == 0);
  CHECK(refused->text == "60 frames are more than live.max_length = 50");
  CHECK(desk.status().pool_sequences == 5);
}

TEST_CASE("delivery: rows say of which epoch of another plan they were forwarded") {
  const TestServer server(live_feed(4));
  RawTrainer trainer(server);
  trainer.wait();
  RawProducer producer(server, "server-1");
  std::vector<Offered> sequences = {{0, 5}, {1, 9}, {2, 1}, {3, 30}};
  sequences[1].epoch = 7;
  sequences[3].epoch = 8;
  CHECK(producer.push(sequences) == 4);
  const auto batch = trainer.next();
  REQUIRE(batch);
  CHECK(batch->numbers == std::vector<std::uint64_t>{3, 1, 0, 2});
  CHECK(batch->epochs == std::vector<std::uint64_t>{8, 7, 0, 0});
  trainer.release(*batch);
  trainer.wait();
  CHECK(producer.push({{4, 5}, {5, 9}, {6, 1}, {7, 30}}) == 8);
  const auto next = trainer.next();
  REQUIRE(next);
  CHECK(next->epochs.empty());
}
