#include <doctest/doctest.h>

#include "daemon/stats/stats.h"

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

/// What a feed of one subscription does each second.
struct Pace {
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
};

FeedSample sample_after(int seconds, const Pace& pace) {
  const double s = seconds;
  const auto n = static_cast<std::uint64_t>(seconds);
  FeedSample sample;
  sample.taken = {};
  sample.taken += std::chrono::seconds(seconds);
  sample.batches_delivered = n * pace.delivered;
  sample.delivered = {n * pace.delivered * 8, n * pace.delivered * 750, n * pace.delivered * 1000,
                      n * pace.delivered * 4096};
  sample.batches_assembled = n * pace.assembled;
  sample.own = {s * pace.assembling, s * pace.storage, s * pace.readahead, s * pace.making};
  sample.all = {s * (pace.assembling + pace.others_assembling),
                s * (pace.storage + pace.others_storage), s * pace.readahead, s * pace.making};
  sample.clients_waited_seconds = s * pace.clients_waited;
  sample.daemon_waited_seconds = s * pace.daemon_waited;
  sample.subscribed_seconds = s;
  return sample;
}

FeedWindow window_of(const Pace& pace, int seconds = 12) {
  FeedWindow window;
  for (int i = 0; i <= seconds; ++i) window.add(sample_after(i, pace));
  return window;
}

std::string verdict(const Pace& pace, const FeedMoment& moment) {
  return name_of(window_of(pace).verdict(moment).bound);
}

const FeedMoment kServing{false, false, 1, 3, 1, 2};

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

TEST_CASE("stats: a feed that was replaced begins a window of its own") {
  FeedWindow window = window_of({}, 20);
  window.add(sample_after(0, {}));
  CHECK(window.rates().batches_per_second == 0.0);
}

TEST_CASE("stats: who holds his credit is what the feed waits for") {
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
        "in the last 10 s clients waited for batches 39 % of the time, and the daemon for clients "
        "55 %; clients' waits are assembly-bound: assembly threads were busy 95 % of the time, 0 % "
        "of that waiting for storage");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.05, 0.9}, kServing) == "mixed");
  CHECK(verdict({4, 4, 1.9, 0.0, 0.0, 0.55, 0.39}, kServing) == "assembly-bound");
}

TEST_CASE("stats: a feed that another one keeps from the threads is blocked by it, by name") {
  FeedMoment moment = kServing;
  moment.other = {"cold", {18.0, 17.1, 0.0}};  // of 10 s, two threads
  const Verdict blocked = window_of({4, 4, 0.1, 0.0, 0.0, 0.6, 0.2, 1.8, 1.71}).verdict(moment);
  CHECK(blocked.bound == Bound::blocked);
  CHECK(
      blocked.why.find("blocked by feed cold: assembly threads were busy 95 % of the time, 95 % of "
                       "that for its batches (95 % of it waiting for storage) and 5 % for this "
                       "feed's") != std::string::npos);
  // Threads that had time left were not what this feed waited for.
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.6, 0.2, 0.4, 0.0}, moment) == "assembly-bound");
}

TEST_CASE("stats: a feed that nobody asks is idle, and one that failed has failed") {
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
  CHECK(
      busy.why.ends_with("assembly threads were busy 100 % of the time, 5 % of that waiting for "
                         "storage; 5 % of their work was for this feed, 0 % of that waiting for "
                         "storage"));
  CHECK(verdict({4, 4, 0.1, 0.0, 0.0, 0.9, 0.0, 1.9, 1.8}, kServing) == "storage-bound");
  CHECK(verdict({4, 4, 0.1, 0.08, 0.0, 0.9, 0.0, 1.9, 0.1}, kServing) == "storage-bound");
  FeedMoment held = kServing;
  held.all_held = true;
  CHECK(window_of({4, 4, 0.1, 0.0, 0.0, 0.9, 0.0})
            .verdict(held)
            .why.ends_with("; clients hold all slots"));
}

TEST_CASE("stats: a verdict tells the figures that it comes from") {
  CHECK(window_of({4, 4, 1.0, 0.8, 0.25, 0.9, 0.05}).verdict(kServing).why ==
        "in the last 10 s clients waited for batches 90 % of the time, and the daemon for clients "
        "5 %; assembly threads were busy 50 % of the time, 80 % of that waiting for storage, "
        "readahead 25 %");
  CHECK(window_of({4, 4, 0.1, 0.0, 0.0, 0.0, 0.9}).verdict(kServing).why ==
        "in the last 10 s clients waited for batches 0 % of the time, and the daemon for clients "
        "90 %; 3 batches lie ready");
}
