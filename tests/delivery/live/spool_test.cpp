// A live feed with a spool goes on behind the death of its daemon: nothing that was accepted is
// lost, or delivered under another step. A desk that ends writes nothing more, as one that is
// killed.

#include "daemon/delivery/feed/live/spool/spool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/delivery/live/virtual_desk.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

using Rows = std::vector<std::pair<std::string, std::uint64_t>>;
constexpr auto kSettled = static_cast<std::size_t>(wire::Outcome::done);
constexpr auto kWaiting = static_cast<std::size_t>(wire::Outcome::waiting);
constexpr auto kDelivered = static_cast<std::size_t>(wire::Outcome::delivered);

Rows rows_of(const std::string& name, std::uint64_t first, std::uint64_t end) {
  Rows rows;
  for (std::uint64_t number = first; number < end; ++number) rows.emplace_back(name, number);
  return rows;
}

std::vector<Offered> offered(std::uint64_t first, std::uint64_t end, std::uint64_t version = 0) {
  std::vector<Offered> all;
  for (; first < end; ++first)
    all.push_back({first, static_cast<std::uint32_t>(1 + first % 7), version});
  return all;
}

/// A feed with a spool, and its daemon, which can be killed.
class SpooledFeedTest {
 public:
  explicit SpooledFeedTest(FeedSettings settings) : settings_(std::move(settings)) {
    settings_.live->spool = folder_ / "spool";
    settings_.queue_grace = std::chrono::milliseconds{1000};
    restart();
  }
  VirtualDesk& operator*() { return *desk_; }
  VirtualDesk* operator->() { return &*desk_; }
  void restart() {
    desk_.reset();
    desk_.emplace(settings_, ++incarnation_);
  }
  void kill() { desk_.reset(); }
  FeedSettings& settings() { return settings_; }
  fs::path data() const { return settings_.live->spool / "data.mdb"; }

 private:
  TemporaryFolder folder_;
  FeedSettings settings_;
  std::uint64_t incarnation_ = 0;
  std::optional<VirtualDesk> desk_;
};

/// Two actors push, a trainer takes, and all die at random.
class SomeLife {
 public:
  explicit SomeLife(std::uint32_t seed)
      : random_(seed), grouped_(draw(3) == 0), reuse_(1 + draw(2)), feed_(some_settings()) {
    meet();
  }

  void live(int events) {
    while (events-- > 0) happen();
  }
  /// All that is left is cut.
  void end() {
    feed_->ask(kTrainer, wire::EndFeedT{});
    feed_.restart();
    do {
      while (position_ < feed_->steps()) see();
      feed_->take(kTrainer, position_);
      feed_->pass(std::chrono::milliseconds(20));
    } while (position_ < feed_->steps());
  }
  void check() {
    std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> times;
    for (const auto& [step, rows] : seen_) {
      for (const auto& row : rows) ++times[row];
    }
    for (const auto& [row, count] : times) CHECK(count <= reuse_);
    for (const auto& [session, name] : kActors) {
      const auto outcomes = feed_->outcomes(session);
      REQUIRE((outcomes || feed_->produce(session, name)));
      const auto totals = (outcomes ? outcomes : feed_->outcomes(session))->totals;
      CHECK(std::accumulate(totals.begin(), totals.end(), std::uint64_t{0}) == next_[name]);
      std::uint64_t delivered = 0;
      for (const auto& [row, count] : times) delivered += row.first == name ? 1 : 0;
      CHECK(totals[kSettled] + totals[kDelivered] == delivered);
      CHECK(totals[kWaiting] == 0);
    }
  }

 private:
  static inline const std::vector<std::pair<SessionId, std::string>> kActors{{kActor, "a"},
                                                                             {kOther, "b"}};

  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  FeedSettings some_settings() {
    FeedSettings settings = live_feed(2 + draw(5), 1);
    LiveSettings& pool = settings.live->pool;
    if (grouped_) pool.groups = LiveGroups::step;
    pool.reuse = reuse_;
    pool.pool_sequences = 64;
    if (draw(2) == 0) pool.max_staleness = 3;
    pool.stale = draw(2) == 0 ? StalePolicy::drop : StalePolicy::pace;
    pool.linger_ms = 10;
    return settings;
  }
  void meet() {
    for (const auto& [session, name] : kActors) {
      const auto produced = feed_->produce(session, name);
      REQUIRE(produced);
      CHECK(produced->next == next_[name]);
      CHECK(produced->version == version_);
    }
    for (const auto& [step, rows] : seen_) {
      if (step < feed_->first_step()) continue;
      CHECK(feed_->rows(step) == rows);
      CHECK(feed_->has_its_values(step, "a"));
    }
  }
  void see() {
    seen_[position_] = feed_->rows(position_);
    ++position_;
  }
  void happen() {
    const auto& [session, name] = kActors[draw(2)];
    switch (draw(8)) {
      case 0: feed_.restart(); return meet();
      case 1:
        feed_->end_session(session);
        REQUIRE(feed_->produce(session, name));
        return;
      case 2: {
        wire::AdvanceT told;
        told.version = ++version_;
        return feed_->ask(kTrainer, told);
      }
      case 3: return feed_->pass(std::chrono::milliseconds(1 + draw(30)));
      case 4:
      case 5:
        if (feed_->steps() > position_) see();
        return feed_->take(kTrainer, position_);
      default: return push(session, name);
    }
  }
  void push(SessionId session, const std::string& name) {
    const std::uint64_t first = next_[name];
    std::vector<Offered> some = offered(first, first + 1 + draw(grouped_ ? 2 : 4), version_);
    ++group_;
    for (Offered& one : some) {
      if (!grouped_) break;
      one.group = group_;
      one.group_size = static_cast<std::uint32_t>(some.size());
    }
    feed_->push(session, some, 0);
    const auto accepted = feed_->answer<wire::Accepted>(session);
    REQUIRE(accepted);
    next_[name] = accepted->next;
  }

  std::mt19937 random_;
  bool grouped_;
  std::uint64_t reuse_;
  SpooledFeedTest feed_;
  std::map<std::string, std::uint64_t> next_;  ///< By producer: what was accepted.
  std::map<std::uint64_t, Rows> seen_;         ///< By step.
  std::uint64_t version_ = 0, group_ = 0, position_ = 0;
};

}  // namespace

TEST_CASE("delivery: spool: what waits is delivered after a restart, and its producer goes on") {
  SpooledFeedTest feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered(0, 3));
  REQUIRE(feed->answer<wire::Accepted>(kActor)->next == 3);
  feed.restart();
  const auto produced = feed->produce(kActor, "actor");
  REQUIRE(produced);
  CHECK(produced->incarnation == 1);
  CHECK(produced->next == 3);
  feed->push(kActor, offered(0, 4));  // three of them are repeats
  feed->take(kTrainer, 0);
  CHECK(feed->rows(0) == rows_of("actor", 0, 4));
  CHECK(feed->has_its_values(0));
  CHECK(feed->outcomes(kActor)->duplicates == 3);
}

TEST_CASE("delivery: spool: a step that was cut stays as it was, bytes and all") {
  SpooledFeedTest feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->take(kTrainer, 0);
  feed->push(kActor, offered(0, 4));
  feed->take(kTrainer, 1);
  feed->push(kActor, offered(4, 10));
  REQUIRE(feed->steps() == 2);
  const Rows second = feed->rows(1);
  feed.restart();
  CHECK(feed->first_step() == 1);  // the trainer had asked for it, and so released the first
  CHECK(feed->steps() == 2);
  CHECK(feed->rows(1) == second);
  CHECK(feed->has_its_values(1));
  REQUIRE(feed->produce(kActor, "actor"));
  auto totals = feed->outcomes(kActor)->totals;
  CHECK(totals[kSettled] == 4);
  CHECK(totals[kDelivered] == 4);
  CHECK(totals[kWaiting] == 2);
  feed->take(kTrainer, 2);
  feed->push(kActor, offered(10, 12));
  CHECK(feed->rows(2) == rows_of("actor", 8, 12));
  // The steps of before are kept for a while, and released with the trainers that come back.
  CHECK(feed->first_step() == 1);
  feed->pass(std::chrono::seconds(2));
  feed->take(kTrainer, 2);
  CHECK(feed->first_step() == 2);
  totals = feed->outcomes(kActor)->totals;
  CHECK(totals[kSettled] == 8);
}

TEST_CASE(
    "delivery: spool: a group that was begun is completed after a restart, and a closed one stays "
    "so") {
  FeedSettings settings = live_feed(4);
  settings.live->pool.groups = LiveGroups::step;
  SpooledFeedTest feed(settings);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{0, 5, 0, 7, 3}, {1, 4, 0, 8, 2}, {2, 4, 0, 7, 3}});
  wire::AbandonT abandon;
  abandon.producer = 1;
  abandon.group = 8;
  abandon.count = 1;
  feed->ask(kActor, abandon);
  abandon.group = 9;  // nobody has begun it
  feed->ask(kActor, abandon);
  feed.restart();
  CHECK(feed->status().groups == 1);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{3, 2, 0, 7, 3}});
  feed->take(kTrainer, 0);
  REQUIRE(feed->steps() == 1);
  CHECK(feed->rows(0) == rows_of("actor", 0, 4));
  feed.restart();
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(
      kActor,
      {{4, 2, 0, 7, 3}, {5, 2, 0, 9, 3}, {6, 2, 0, 9, 3}, {7, 1, 0, 10, 2}, {8, 1, 0, 10, 2}});
  const auto outcomes = feed->outcomes(kActor);
  REQUIRE(outcomes);
  CHECK(outcomes->outcomes.at(4) == wire::Outcome::abandoned);  // its group was delivered
  feed->take(kTrainer, 1);
  CHECK(feed->rows(1) == rows_of("actor", 5, 9));  // one of three was abandoned before
}

TEST_CASE("delivery: spool: lanes go on with their sequences") {
  FeedSettings settings = live_feed(2);
  settings.live->pool.step_unit = StepUnit::lanes;
  settings.live->pool.unroll = 4;
  SpooledFeedTest feed(settings);
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, {{0, 9}, {1, 5}, {2, 3}});
  const auto parts = [&feed](std::uint64_t step) {
    std::vector<Row> rows;
    feed->source().rows(BatchIndex{step}, rows);
    std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> all;
    for (const Row& row : rows) all.emplace_back(row.ordinal, row.start, row.length);
    return all;
  };
  using Parts = decltype(parts(0));
  feed->take(kTrainer, 0);
  CHECK(parts(0) == Parts{{0, 0, 4}, {1, 0, 4}});
  feed.restart();
  CHECK(parts(0) == Parts{{0, 0, 4}, {1, 0, 4}});
  feed->take(kTrainer, 1);
  CHECK(parts(1) == Parts{{0, 4, 4}, {1, 4, 1}});
  feed.restart();
  CHECK(parts(1) == Parts{{0, 4, 4}, {1, 4, 1}});
  feed->take(kTrainer, 2);
  CHECK(parts(2) == Parts{{0, 8, 1}, {2, 0, 3}});
  REQUIRE(feed->produce(kActor, "actor"));
  CHECK(feed->outcomes(kActor)->totals[kWaiting] == 0);
}

TEST_CASE("delivery: spool: versions, staleness and deliveries go on") {
  FeedSettings settings = live_feed(2);
  settings.live->pool.max_staleness = 2;
  settings.live->pool.stale = StalePolicy::drop;
  settings.live->pool.reuse = 2;
  SpooledFeedTest feed(settings);
  const auto advance = [&](std::uint64_t version) {
    wire::AdvanceT told;
    told.version = version;
    feed->ask(kTrainer, told);
  };
  REQUIRE(feed->produce(kActor, "actor"));
  advance(5);
  feed->push(kActor, offered(0, 2, 5));
  feed->push(kActor, offered(2, 4, 4));
  feed->take(kTrainer, 0);
  REQUIRE(feed->steps() == 1);
  const Rows first = feed->rows(0);
  feed.restart();
  CHECK(feed->produce(kActor, "actor")->version == 5);
  advance(7);  // what is of version 4 and waits is too stale by that
  std::map<std::pair<std::string, std::uint64_t>, int> times;
  for (const auto& row : feed->rows(0)) ++times[row];
  for (std::uint64_t step = 1; step < 4; ++step) {
    feed->take(kTrainer, step);
    if (feed->steps() <= step) break;
    for (const auto& row : feed->rows(step)) ++times[row];
  }
  for (const auto& [row, count] : times) CHECK(count <= 2);
  const auto totals = feed->outcomes(kActor)->totals;
  CHECK(std::accumulate(totals.begin(), totals.end(), std::uint64_t{0}) == 4);
}

/// Whatever was accepted is in one step, or dropped for a reason that its producer is told, and a
/// step that any trainer saw never changes.
TEST_CASE("delivery: spool: in any order of deaths each accepted sequence is delivered once") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    SomeLife life(seed);
    life.live(150);
    life.end();
    life.check();
  }
}

TEST_CASE(
    "delivery: spool: of the folder of another feed nothing is taken, and it says what it is of") {
  SpooledFeedTest feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered(0, 2));
  CHECK(Spool::open(feed.settings(), 9).error().code == ErrorCode::busy);
  feed.kill();
  const auto refusal = [&](auto change) {
    FeedSettings other = feed.settings();
    change(other);
    const auto opened = Spool::open(other, 9);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ErrorCode::bad_configuration);
    return opened.error().message;
  };
  CHECK(refusal([](FeedSettings& other) { other.name = "other"; }).find("feed live") !=
        std::string::npos);
  CHECK(refusal([](FeedSettings& other) { other.plan.world = 2; }).find("plan.world 1") !=
        std::string::npos);
  CHECK(refusal([](FeedSettings& other) {
          other.live->pool.groups = LiveGroups::step;
        }).find("live.groups none") != std::string::npos);
  CHECK(refusal([](FeedSettings& other) {
          other.live->schema.fields[0].name = "y";
        }).find("fields ") != std::string::npos);
  const auto own = Spool::open(feed.settings(), 9);
  REQUIRE(own);
  CHECK(own->feed.sequences.size() == 2);
}

TEST_CASE("delivery: spool: a feed that has ended and was delivered begins as a new one") {
  SpooledFeedTest feed(live_feed(2));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->push(kActor, offered(0, 2));
  feed->take(kTrainer, 0);
  feed->ask(kTrainer, wire::EndFeedT{});
  feed.restart();
  CHECK(feed->produce(kActor, "actor")->next == 2);  // its step is kept
  feed->pass(std::chrono::seconds(2));
  feed->take(kTrainer, 1);
  feed.restart();
  const auto produced = feed->produce(kActor, "actor");
  CHECK(produced->next == 0);
  CHECK(produced->incarnation == 3);
}

TEST_CASE("delivery: spool: any byte that is another is found, or changes nothing that is told") {
  SpooledFeedTest feed(live_feed(4));
  REQUIRE(feed->produce(kActor, "actor"));
  feed->take(kTrainer, 0);
  feed->push(kActor, offered(0, 7));
  REQUIRE(feed->steps() == 1);
  const Rows rows = feed->rows(0);
  feed.kill();
  std::string whole;
  {
    std::ifstream in(feed.data(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::size_t found = 0;
  for (std::size_t at = 0; at < whole.size(); at += 61) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ (1 << at % 8));
    std::ofstream(feed.data(), std::ios::binary) << other;
    const auto opened = Spool::open(feed.settings(), 9);
    if (!opened) {
      ++found;
      CHECK(opened.error().message.find("spool") != std::string::npos);
    }
  }
  CHECK(found > 20);
  std::ofstream(feed.data(), std::ios::binary) << whole;
  feed.restart();
  CHECK(feed->rows(0) == rows);
}
