#include <doctest/doctest.h>

#include <algorithm>

#include "daemon/stats/stats.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

/// What a feed of one subscription does each second.
struct Course {
  std::uint64_t delivered = 4;
  std::uint64_t assembled = 4;
  double assembling = 0.1;
  double storage = 0.0;
  double readahead = 0.0;
  double clients_waited = 0.0;
  double daemon_waited = 0.0;
  double others_assembling = 0.0;  ///< The same threads, for other feeds.
  double others_storage = 0.0;
  double making = 0.0;
  double lacking = 0.0;  ///< A processor, while this feed's batches are assembled.
  double slots = 0.0;    ///< Of the clients' waits.
  double handing = 0.0;  ///< Threads that hand over had no processor.
  // Of a live feed with two producers.
  double steps = 0.0;  ///< Of the clients' waits.
  double room = 0.0;
  double versions = 0.0;
  std::uint64_t accepted = 0;
  std::uint64_t stale = 0;
};

FeedSample sample_after(int seconds, const Course& pace) {
  const double s = seconds;
  const auto n = static_cast<std::uint64_t>(seconds);
  FeedSample sample;
  sample.taken = {};
  sample.taken += std::chrono::seconds(seconds);
  sample.batches_delivered = n * pace.delivered;
  sample.delivered = {n * pace.delivered * 8, n * pace.delivered * 750, n * pace.delivered * 1000,
                      n * pace.delivered * 4096};
  sample.batches_assembled = n * pace.assembled;
  sample.own = {s * pace.assembling, s * pace.storage, s * pace.readahead, s * pace.making,
                s * pace.lacking};
  sample.all = {s * (pace.assembling + pace.others_assembling),
                s * (pace.storage + pace.others_storage), s * pace.readahead, s * pace.making,
                s * pace.lacking};
  sample.clients_waited_seconds = s * pace.clients_waited;
  sample.slot_waited_seconds = s * pace.slots;
  sample.handing_delay_seconds = s * pace.handing;
  sample.daemon_waited_seconds = s * pace.daemon_waited;
  sample.subscribed_seconds = s;
  sample.step_waited_seconds = s * pace.steps;
  sample.producers = {2 * s, s * pace.room, 0.0, s * pace.versions, 0.0};
  sample.accepted = n * pace.accepted;
  sample.dropped_stale = n * pace.stale;
  return sample;
}

FeedWindow window_of(const Course& pace, int seconds = 12) {
  FeedWindow window;
  for (int i = 0; i <= seconds; ++i) window.add(sample_after(i, pace));
  return window;
}

std::string verdict(const Course& pace, const FeedMoment& moment) {
  return name_of(window_of(pace).verdict(moment).bound);
}

const FeedMoment kServing{false, false, 1, 3, 1, 2};

/// A pool that has 3 of 16 sequences of a step, and two producers.
LiveStatus live_of() {
  LiveStatus live;
  live.version = 7;
  live.version_ago = 120s;
  live.max_staleness = 1;
  live.step_unit = "sequences";
  live.step_needs = 16;
  live.step_has = 3;
  live.waiting = 8;
  live.waiting_bytes = 1 << 20;
  live.pool_sequences = 1024;
  live.pool_bytes = 1 << 30;
  live.groups = 1;
  live.groups_missing = 5;
  live.claimed = 5;
  live.producers_connected = 2;
  live.pushed_ago = 4s;
  return live;
}

FeedMoment moment_of(const LiveStatus& live) {
  FeedMoment moment = kServing;
  moment.live = &live;
  return moment;
}

/// A live feed whose clients wait for steps nine tenths of the time.
Course starving() {
  Course pace{0, 0, 0.0, 0.0, 0.0, 0.9, 0.0};
  pace.steps = 0.9;
  return pace;
}

}  // namespace

TEST_CASE("stats: rates are those of the last ten seconds") {
  FeedWindow window;
  CHECK(window.rates().batches_per_second == 0.0);
  window.add(sample_after(0, {}));
  CHECK(window.rates().batches_per_second == 0.0);  // one sample says nothing
  for (int i = 1; i <= 30; ++i) window.add(sample_after(i, {}));
  const Rates rates = window.rates();
  CHECK(rates.batches_per_second == doctest::Approx(4.0));
  CHECK(rates.sequences_per_second == doctest::Approx(32.0));
  CHECK(rates.frames_per_second == doctest::Approx(3000.0));
  CHECK(rates.bytes_per_second == doctest::Approx(16384.0));
  REQUIRE(rates.padded_share);
  CHECK(*rates.padded_share == doctest::Approx(0.25));
}

TEST_CASE("stats: a feed that goes idle has rates of 0 after ten seconds, and keeps them") {
  FeedWindow window = window_of({}, 20);
  FeedSample last = sample_after(20, {});
  for (int i = 0; i < 30; ++i) {
    last.taken += 1s;
    window.add(last);
    if (i < 10) continue;
    CHECK(window.rates().batches_per_second == 0.0);
    CHECK(!window.rates().padded_share);
  }
}

TEST_CASE("stats: the rates of the last two minutes are kept, one a second") {
  FeedWindow window;
  for (int i = 0; i <= 300; ++i) window.add(sample_after(i, {}));
  REQUIRE(window.past().size() == FeedWindow::kPast);
  CHECK(window.past().front().taken == sample_after(181, {}).taken);
  CHECK(window.past().back().taken == sample_after(300, {}).taken);
  CHECK(window.past().back().bytes_per_second == window.rates().bytes_per_second);
  window.add(sample_after(1, {}));  // another feed under the same name
  CHECK(window.past().size() == 1);
}

TEST_CASE("stats: a feed that was replaced begins a window of its own") {
  FeedWindow window = window_of({}, 20);
  window.add(sample_after(0, {}));
  CHECK(window.rates().batches_per_second == 0.0);
}

TEST_CASE("stats: a client that holds its credit is what the feed waits for") {
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.0, 0.9}, kServing) == "trainer-bound");
  // A client that holds all it may for hours gets nothing more, and is still what is waited for.
  CHECK(verdict({0, 0, 0.0, 0.0, 0.0, 0.0, 1.0}, kServing) == "trainer-bound");
  // Handing over takes a little.
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.04, 0.0}, kServing) == "trainer-bound");
}

TEST_CASE("stats: clients that wait are bound by assembly, or by what assembly waits for") {
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.9, 0.0}, kServing) == "assembly-bound");
  CHECK(verdict({4, 4, 1.9, 0.9, 0.0, 0.9, 0.0}, kServing) == "assembly-bound");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 0.9}, kServing) == "assembly-bound");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 1.0}, kServing) == "feature-bound");
  CHECK(verdict({4, 4, 1.9, 1.0, 0.0, 0.9, 0.0}, kServing) == "storage-bound");
  CHECK(verdict({4, 4, 0.5, 0.0, 0.95, 0.9, 0.0}, kServing) == "storage-bound");
  // Begun, and not finished for as long as the window goes.
  CHECK(verdict({0, 0, 0.0, 0.0, 0.0, 1.0, 0.0}, kServing) == "storage-bound");
  FeedMoment planning = kServing;
  planning.filling_slots = 0;
  planning.planning = true;
  const Verdict planned = window_of({0, 0, 0.0, 0.0, 0.0, 1.0, 0.0}).verdict(planning);
  CHECK(planned.bound == Bound::assembly);
  CHECK(planned.why.ends_with("an epoch is being planned"));
}

TEST_CASE("stats: clients that wait a tenth of their time are no sign of health") {
  const Verdict mixed = window_of({4, 4, 1.9, 0.0, 0.0, 0.39, 0.55}).verdict(kServing);
  CHECK(mixed.bound == Bound::mixed);
  CHECK(mixed.why ==
        "in the last 10 s clients waited for batches 39 % of the time, and the daemon longer for "
        "them; clients' waits are assembly-bound: assembly threads were busy 95 % of the time");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.05, 0.9}, kServing) == "mixed");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.55, 0.39}, kServing) == "assembly-bound");
}

TEST_CASE("stats: a feed that another one keeps from the threads is blocked by it, by name") {
  FeedMoment moment = kServing;
  moment.other = {"cold", {18.0, 17.1, 0.0}};  // of 10 s, two threads
  const Verdict blocked = window_of({4, 4, 0.1, 0.0, 0.0, 0.6, 0.2, 1.8, 1.71}).verdict(moment);
  CHECK(blocked.bound == Bound::blocked);
  CHECK(blocked.why ==
        "in the last 10 s clients waited for batches 60 % of the time; blocked by feed cold, for "
        "which assembly threads worked 90 % of the time");
  // Threads that had time left were not what this feed waited for.
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.6, 0.2, 0.4, 0.0}, moment) == "assembly-bound");
}

TEST_CASE("stats: a feed that no client asks is idle, and one that failed has failed") {
  CHECK(verdict({0, 0, 0.0, 0.0, 0.0, 0.0, 0.0}, kServing) == "idle");
  FeedMoment nobody = kServing;
  nobody.subscriptions = 0;
  CHECK(verdict({}, nobody) == "idle");
  FeedMoment failed = kServing;
  failed.failed = true;
  CHECK(verdict({}, failed) == "failed");
}

TEST_CASE("stats: what the threads did for other feeds counts") {
  const Verdict busy = window_of({4, 4, 0.1, 0.0, 0.0, 0.9, 0.0, 1.9, 0.1}).verdict(kServing);
  CHECK(busy.bound == Bound::assembly);
  CHECK(busy.why.ends_with("; assembly threads were busy 100 % of the time"));
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.9, 0.0, 1.9, 1.8}, kServing) == "storage-bound");
  CHECK(verdict({4, 4, 0.1, 0.08, 0.0, 0.9, 0.0, 1.9, 0.1}, kServing) == "storage-bound");
}

TEST_CASE("stats: clients that wait for slots of others are slot-bound, with the number to set") {
  FeedMoment moment = kServing;
  moment.slots_to_set = 18;
  Course pace{4, 4, 0.1, 0.0, 0.0, 0.6, 0.2};
  pace.slots = 0.4;
  const Verdict bound = window_of(pace).verdict(moment);
  CHECK(bound.bound == Bound::slots);
  CHECK(
      bound.why ==
      "in the last 10 s clients waited for batches 60 % of the time; for slots that other clients "
      "held: raise slots to 18");
  pace.daemon_waited = 0.9;
  CHECK(window_of(pace).verdict(moment).why.ends_with(
      "clients' waits are slot-bound: for slots that other clients held: raise slots to 18"));
  pace = {4, 4, 1.9, 0.0, 0.0, 0.6, 0.2};
  pace.slots = 0.2;
  CHECK(verdict(pace, moment) == "assembly-bound");
}

TEST_CASE("stats: a lack of processors is not taken for the disk's time, or the recipe's") {
  Course pace{4, 4, 1.9, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 1.8};
  CHECK(verdict(pace, kServing) == "feature-bound");
  pace.lacking = 1.0;
  const Verdict bound = window_of(pace).verdict(kServing);
  CHECK(bound.bound == Bound::processor);
  CHECK(
      bound.why.ends_with("; in 53 % of the time of assembling its batches no processor was free"));
  // The threads that assemble have little to do, and those that hand over cannot run.
  pace = {4, 4, 0.1, 0.0, 0.0, 0.4, 0.0};
  pace.handing = 0.2;
  CHECK(verdict(pace, kServing) == "processor-bound");
  pace.handing = 0.1;
  CHECK(verdict(pace, kServing) == "assembly-bound");
  // They assemble for a hundredth of the time, and the clients wait for something else.
  pace = {4, 4, 0.01, 0.0, 0.0, 0.4, 0.0};
  pace.lacking = 0.01;
  CHECK(verdict(pace, kServing) == "assembly-bound");
  // No client waits.
  pace.clients_waited = 0.01;
  CHECK(verdict(pace, kServing) == "trainer-bound");
}

TEST_CASE("stats: a verdict tells the figures that it comes from") {
  CHECK(window_of({4, 4, 1.0, 0.8, 0.25, 0.9, 0.05}).verdict(kServing).why ==
        "in the last 10 s clients waited for batches 90 % of the time; 80 % of the time of "
        "assembling "
        "its batches was spent waiting for storage");
  CHECK(window_of({4, 4, 0.1, 0.0, 0.0, 0.0, 0.9}).verdict(kServing).why ==
        "in the last 10 s clients waited for batches 0 % of the time, and the daemon for clients "
        "90 %; 3 batches are ready");
}

TEST_CASE("stats: trainers of a live feed wait for its producers, unless those wait") {
  const LiveStatus live = live_of();
  const FeedMoment moment = moment_of(live);
  const std::string waits = "in the last 10 s clients waited for batches 90 % of the time; ";
  Verdict found = window_of(starving()).verdict(moment);
  CHECK(found.bound == Bound::producers);
  CHECK(found.why == waits +
                         "the next step has 3 of 16 sequences; 1 incomplete group lacks 5 "
                         "members; 2 producers are connected, the last sequence came 4 s ago; "
                         "5 are to come");
  Course pace = starving();
  pace.room = 1.0;
  found = window_of(pace).verdict(moment);
  CHECK(found.bound == Bound::pool);
  CHECK(found.why == waits +
                         "producers waited for room 50 % of the time: the pool has 13 of 1024 "
                         "sequences, 1.0 MiB of 1024.0 MiB; 1 incomplete group lacks 5 members");
  pace.versions = 1.5;
  found = window_of(pace).verdict(moment);
  CHECK(found.bound == Bound::staleness);
  CHECK(found.why == waits +
                         "producers waited for a newer version 75 % of the time (max_staleness "
                         "1): 7 was announced 120 s ago");
  pace = starving();
  pace.accepted = 10;
  pace.stale = 5;
  found = window_of(pace).verdict(moment);
  CHECK(found.bound == Bound::staleness);
  CHECK(found.why == waits +
                         "50 of 100 sequences that producers pushed were dropped as too stale "
                         "(max_staleness 1): 7 was announced 120 s ago");
  pace.stale = 4;
  CHECK(verdict(pace, moment) == "producer-bound");
  // A batch that was cut and is not there is a matter of assembly.
  pace = {4, 4, 1.9, 0.0, 0.0, 0.9};
  pace.steps = 0.4;
  CHECK(verdict(pace, moment) == "assembly-bound");
}

TEST_CASE("stats: a live feed whose producers are gone, or whose slots are too small, says so") {
  LiveStatus live = live_of();
  live.producers_connected = live.groups = 0;
  CHECK(window_of(starving())
            .verdict(moment_of(live))
            .why.ends_with("the next step has 3 of 16 sequences; no producer is connected"));
  live.wanted_slot_bytes = 3 << 20;
  const Verdict small = window_of(starving()).verdict(moment_of(live));
  CHECK(small.bound == Bound::slots);
  CHECK(small.why.ends_with("larger slots, of 3.0 MiB: raise memory, or make steps smaller"));
  live.wanted_slot_bytes = 0;
  live.unrecorded_bytes = 3 << 20;
  CHECK(window_of(starving()).verdict(moment_of(live)).bound == Bound::storage);
}

TEST_CASE("stats: a live feed whose trainers do not wait is bound by them, while they take steps") {
  LiveStatus live = live_of();
  live.pushes_waiting = 2;
  const FeedMoment moment = moment_of(live);
  Course pace{4, 4, 0.1, 0.0, 0.0, 0.0, 0.9};
  pace.room = 2.0;
  const Verdict bound = window_of(pace).verdict(moment);
  CHECK(bound.bound == Bound::trainer);
  CHECK(bound.why.ends_with("3 batches are ready; 2 pushes wait for room in the pool"));
  // None takes one: what producers wait for is what can be seen.
  pace = {0, 0, 0.0, 0.0, 0.0, 0.0, 0.0};
  CHECK(verdict(pace, moment) == "idle");
  pace.room = 2.0;
  CHECK(verdict(pace, moment) == "pool-bound");
  pace.room = 0.0;
  pace.versions = 2.0;
  CHECK(verdict(pace, moment) == "staleness-bound");
  FeedMoment unused = moment;
  unused.subscriptions = 0;
  const Verdict idle = window_of(pace).verdict(unused);
  CHECK(idle.bound == Bound::idle);
  CHECK(idle.why.starts_with("no client is subscribed; the next step has 3 of 16 sequences"));
}

TEST_CASE("stats: no verdict has more than two percentages in its reason") {
  FeedMoment moment = kServing;
  moment.other = {"cold", {18.0, 17.1, 0.0}};
  for (int i = 0; i < 4096; ++i) {
    const auto at = [i](int place) { return 0.3 * ((i >> (2 * place)) % 4); };
    Course pace{4, 4, 2 * at(0), at(0) * at(1), at(2), at(3), at(4), 0.0, 0.0, at(5)};
    const std::string why = window_of(pace).verdict(i % 2 == 0 ? kServing : moment).why;
    CAPTURE(why);
    REQUIRE(std::count(why.begin(), why.end(), '%') <= 2);
  }
}
