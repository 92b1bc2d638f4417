#include "daemon/planning/plan.h"

#include <algorithm>

#include "daemon/planning/cut.h"
#include "daemon/planning/draft.h"
#include "daemon/planning/order.h"
#include "daemon/planning/select.h"
#include "daemon/planning/shuffle.h"
#include "daemon/planning/sweep.h"
#include "daemon/planning/unroll.h"

namespace batchwright {

/// What is left of the draft: 4 bytes a row and 8 a batch, or 8 a sequence when unrolled.
struct EpochPlan::State {
  Draft draft;
  Unrolled unrolled;
  std::uint32_t world = 1;

  bool is_unrolled() const { return unrolled.lanes() != 0; }

  std::span<const std::uint32_t> batch(BatchIndex index) const {
    const std::uint32_t cut = draft.sequence[index.value];
    return draft.order.items().subspan(draft.starts[cut],
                                       draft.starts[cut + 1] - draft.starts[cut]);
  }

  /// Calls `use` with every row of a batch.
  template <class Use>
  void each_row(BatchIndex index, const Use& use) const {
    if (!is_unrolled()) {
      for (const std::uint32_t item : batch(index)) use(draft.table.row(item));
      return;
    }
    const std::uint64_t first = index.value % world * unrolled.lanes();
    for (std::uint64_t lane = first; lane < first + unrolled.lanes(); ++lane) {
      use(unrolled.row(draft.table, index.value / world, lane));
    }
  }
};

namespace {

/// From the order of the items to the sequence of the batches.
Result<void> batch_up(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  if (auto done = cut_batches(draft, settings); !done) return done;
  if (auto done = spread_batches(draft, settings); !done) return done;
  return sequence_batches(draft, settings, seed);
}

}  // namespace

Result<EpochPlan> plan_epoch(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             Epoch epoch, std::span<const std::uint64_t> datasets) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  auto draft = begin_draft(lengths, settings, datasets);
  if (!draft) return draft.error();
  if (auto fits = check_capacity(*draft, settings); !fits) return fits.error();
  if (auto reach = check_boundaries(*draft, settings); !reach) return reach.error();
  const std::uint64_t seed = settings.seed + epoch.value;
  if (auto done = select_items(*draft, settings, epoch); !done) return done.error();
  if (auto done = order_items(*draft, settings, seed); !done) return done.error();
  EpochPlan::State state;
  state.world = settings.world;
  if (settings.lanes != 0) {
    auto unrolled = Unrolled::deal(*draft, settings);
    if (!unrolled) return unrolled.error();
    state.unrolled = std::move(*unrolled);
  } else if (auto done = batch_up(*draft, settings, seed); !done) {
    return done.error();
  }
  state.draft = std::move(*draft);
  return EpochPlan(std::make_shared<EpochPlan::State>(std::move(state)));
}

std::uint64_t EpochPlan::batches() const {
  return state_->is_unrolled() ? state_->unrolled.steps() * state_->world
                               : state_->draft.sequence.size();
}

std::uint64_t EpochPlan::steps() const { return batches() / state_->world; }

std::uint32_t EpochPlan::world() const { return state_->world; }

void EpochPlan::rows(BatchIndex index, std::vector<Row>& rows) const {
  rows.clear();
  state_->each_row(index, [&rows](const Row& row) { rows.push_back(row); });
}

BatchFigures EpochPlan::figures(BatchIndex index) const {
  BatchFigures figures;
  state_->each_row(index, [&figures](const Row& row) {
    ++figures.rows;
    figures.batch_length = std::max(figures.batch_length, row.length);
    figures.frames += row.length;
  });
  return figures;
}

PlanCounts EpochPlan::counts() const {
  return {state_->draft.left_out, state_->draft.kept, state_->draft.selected};
}

std::span<const std::uint32_t> EpochPlan::bucket_limits() const {
  return state_->draft.bucket_limits;
}

Result<DataUsage> data_usage(const PlanSettings& settings, Epoch epoch) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  const auto sweep = Sweep::make(settings);
  if (!sweep) return sweep.error();
  const std::uint64_t last = settings.epochs == 0 ? epoch.value : settings.epochs - 1;
  return DataUsage{sweep->share(epoch.value), sweep->usage_until(epoch.value),
                   sweep->usage_until(last), sweep->parameter()};
}

std::uint64_t settings_hash(const PlanSettings& settings) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  };
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(settings, row.name);
    if (value.empty() || row.name == "seed") continue;
    add(row.name);
    add("=");
    add(value);
    add("\n");
  }
  return hash;
}

}  // namespace batchwright
