// A live feed with a spool whose producers, trainer and daemon die at random.

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/delivery/live/feed_with_spool.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

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
      CHECK(totals[kDoneTotal] + totals[kDeliveredTotal] == delivered);
      CHECK(totals[kWaitingTotal] == 0);
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
    std::vector<Offered> some =
        offered_between(first, first + 1 + draw(grouped_ ? 2 : 4), version_);
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
  FeedWithSpool feed_;
  std::map<std::string, std::uint64_t> next_;  ///< By producer: what was accepted.
  std::map<std::uint64_t, NamedRows> seen_;    ///< By step.
  std::uint64_t version_ = 0, group_ = 0, position_ = 0;
};

}  // namespace

/// Whatever was accepted is in one step, or dropped for a reason that its producer is told, and a
/// step that any trainer saw never changes.
TEST_CASE("delivery: spool: in any order of deaths each accepted sequence is delivered once") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    SomeLife life(seed);
    life.live(150);
    life.end();
    life.check();
  }
}
