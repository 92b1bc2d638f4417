// What the pools of a long run are.

#include "tests/live/long/long_parts.h"

namespace batchwright::test {
namespace {

StepUnit draw_unit(const LongRun& run, Dice& dice) {
  if (run.is_paced) return run.unit;
  const std::uint64_t draw = dice.below(100);
  if (draw < 50) return StepUnit::sequences;
  return draw < 75 ? StepUnit::groups : StepUnit::frames;
}

}  // namespace

std::pair<LiveSettings, std::uint64_t> draw_settings(const LongRun& run, Dice& dice) {
  LiveSettings pool;
  pool.world = dice.between(1, 3);
  pool.seed = dice.below(1000);
  pool.frame_bytes = {1};
  pool.max_length = kLongest;
  pool.step_unit = draw_unit(run, dice);
  const bool has_groups = pool.step_unit == StepUnit::groups || dice.percent(25);
  if (has_groups) pool.groups = dice.percent(50) ? LiveGroups::step : LiveGroups::batch;
  std::uint64_t together = dice.between(has_groups ? 2 : 1, 4);
  const std::uint64_t units = pool.world * dice.between(1, 4);
  std::uint64_t rows = units * (has_groups ? together : 1);
  pool.step = rows;
  if (pool.step_unit == StepUnit::groups) pool.step = units;
  if (pool.step_unit == StepUnit::frames) {
    pool.step = rows * kLongest;
    rows = 4 * rows;
  }
  if (!has_groups) together = std::min(together, std::max<std::uint64_t>(units / 2, 1));
  pool.pool_sequences = (rows + pool.world * together + together) * dice.between(1, 4);
  pool.cut = dice.percent(50) ? Cut::fixed : Cut::dynamic;
  pool.window = dice.between(1, 4);
  if (dice.percent(60)) pool.linger_ms = dice.below(200);
  pool.max_staleness = dice.below(5);
  if (run.is_paced) return {pool, together};
  if (dice.percent(60)) {
    pool.stale = dice.percent(50) ? StalePolicy::drop : StalePolicy::zero;
  }
  if (dice.percent(15)) pool.zero_most_stale = 1;
  if (!has_groups && dice.percent(15)) {
    pool.reuse = dice.between(2, 3);
    together = 1;
    if (pool.stale != StalePolicy::pace && dice.percent(50)) pool.select = LiveSelect::uniform;
  }
  return {pool, together};
}

}  // namespace batchwright::test
