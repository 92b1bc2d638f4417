#include <doctest/doctest.h>
#include <unistd.h>

#include <set>

#include "daemon/stats/stats.h"

using namespace batchwright;

namespace {

constexpr auto kCounters = static_cast<std::size_t>(FeedCounter::count);

}  // namespace

TEST_CASE("stats: every counter has a name of its own and a sentence") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kCounters; ++i) {
    const CounterRow& row = describe(static_cast<FeedCounter>(i));
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(row.help.ends_with("."));
  }
  CHECK(names.size() == kCounters);
}

TEST_CASE("stats: names stand at their counters") {
  CHECK(describe(FeedCounter::batches_assembled).name == "batches_assembled");
  CHECK(describe(FeedCounter::padded_frames_delivered).name == "padded_frames_delivered");
  CHECK(describe(FeedCounter::releases_unknown).name == "releases_unknown");
  CHECK(describe(FeedCounter::epochs_planned).name == "epochs_planned");
}

TEST_CASE("stats: counts add up, and a copy keeps those of its moment") {
  FeedCounters counters;
  for (int i = 0; i < 2; ++i) {
    counters.add(FeedCounter::releases, 10'000);
    counters.add(wire::Mode::queue, {8, 750, 1000, 1 << 20});
  }
  const FeedCounters then = counters;
  counters.add(FeedCounter::releases);
  CHECK(then.get(FeedCounter::releases) == 20'000);
  CHECK(counters.get(FeedCounter::releases) == 20'001);
  CHECK(then.get(FeedCounter::bytes_delivered) == 2 << 20);
  CHECK(then.get(FeedCounter::corrupt_records) == 0);
}

TEST_CASE("stats: what was delivered is the sum over the modes") {
  FeedCounters counters;
  counters.add(wire::Mode::replica, {8, 750, 1000, 4096});
  counters.add(wire::Mode::sharded, {4, 70, 100, 512});
  CHECK(counters.get(FeedCounter::batches_delivered) == 2);
  CHECK(counters.get(FeedCounter::sequences_delivered) == 12);
  CHECK(counters.get(FeedCounter::frames_delivered) == 820);
  CHECK(counters.get(FeedCounter::padded_frames_delivered) == 1100);
  CHECK(counters.get(FeedCounter::bytes_delivered) == 4608);
  CHECK(counters.get(wire::Mode::sharded, ModeCounter::frames) == 70);
}

TEST_CASE("stats: the process finds itself") {
  const ProcessStats stats = read_process_stats();
  CHECK(stats.pid == static_cast<std::uint64_t>(getpid()));
  CHECK(stats.cpu_seconds > 0.0);
  CHECK(stats.anonymous_bytes > 0);
  CHECK(stats.resident_bytes ==
        stats.anonymous_bytes + stats.mapped_file_bytes + stats.shared_memory_bytes);
}
