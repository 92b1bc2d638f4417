// What holds however long it goes on. `live_long_run` runs the same for millions of sequences.

#include "tests/live/long/long_run.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("live: no step exceeds the bound, whatever versions, pauses, jumps and restores come") {
  LongRun run;
  run.sequences = 100'000;
  const LongRunFigures figures = run_long(run);
  CHECK(figures.fault == "");
  REQUIRE(figures.rows >= run.sequences);
  CHECK(figures.at_bound != 0);
  CHECK(figures.zeroed != 0);
  CHECK(figures.old_lines != 0);
  CHECK(figures.dropped != 0);
  CHECK(figures.jumps != 0);
  CHECK(figures.pauses != 0);
  CHECK(figures.replays != 0);
  CHECK(figures.restores != figures.replays);
}

TEST_CASE("live: pace drops nothing that was claimed, and has no bias to short sequences") {
  for (const StepUnit unit : {StepUnit::sequences, StepUnit::groups, StepUnit::frames}) {
    for (const std::uint32_t prefetch : {0U, 1U, 2U}) {
      CAPTURE(word_of(kStepUnits, unit));
      CAPTURE(prefetch);
      const LongRunFigures figures = run_long({1, 20'000, true, unit, prefetch});
      CHECK(figures.fault == "");
      CHECK(figures.dropped == 0);
      const double pushed =
          static_cast<double>(figures.pushed_frames) / static_cast<double>(figures.pushed);
      const double had = static_cast<double>(figures.frames) / static_cast<double>(figures.rows);
      CHECK(std::abs(had / pushed - 1) <= 0.005);
    }
  }
}
