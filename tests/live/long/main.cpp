// live_long_run [SEQUENCES [SEED]]: a long run of any settings, and one of each kind that is paced
// with a tenth of the sequences. Prints what was counted, and ends with 1 when something did not
// hold.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/live/long/long_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bool tell(const std::string& what, const LongRunFigures& figures) {
  const auto mean = [](std::uint64_t frames, std::uint64_t rows) {
    return static_cast<double>(frames) / static_cast<double>(rows);
  };
  const double had = mean(figures.frames, figures.rows);
  const double pushed = mean(figures.pushed_frames, figures.pushed);
  fmt::print(
      "{}: {} rows in {} steps of {} pools, {} events; {} with a bound, {} at it, {} zeroed, {} of "
      "older lines; {} restores, {} of them replays; {} jumps, {} pauses; {} dropped; mean length "
      "{:.3f} pushed, {:+.3f} % delivered\n",
      what, figures.rows, figures.steps, figures.pools, figures.events, figures.bounded,
      figures.at_bound, figures.zeroed, figures.old_lines, figures.restores, figures.replays,
      figures.jumps, figures.pauses, figures.dropped, pushed, 100 * (had / pushed - 1));
  if (!figures.fault.empty()) fmt::print("FAILED: {}\n", figures.fault);
  std::fflush(stdout);
  return figures.fault.empty();
}

}  // namespace

int main(int count, char** words) {
  LongRun run;
  run.sequences = count > 1 ? std::strtoull(words[1], nullptr, 10) : 10'000'000;
  run.seed = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
  bool holds = tell("any", run_long(run));
  for (const StepUnit unit : {StepUnit::sequences, StepUnit::groups, StepUnit::frames}) {
    for (const std::uint32_t prefetch : {0U, 1U, 2U}) {
      const LongRun paced{run.seed, run.sequences / 10, true, unit, prefetch};
      holds = tell(fmt::format("pace, {}, prefetch {}", word_of(kStepUnits, unit), prefetch),
                   run_long(paced)) &&
              holds;
    }
  }
  return holds ? 0 : 1;
}
