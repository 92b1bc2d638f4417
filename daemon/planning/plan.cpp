#include "daemon/planning/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "daemon/planning/stages/cut.h"
#include "daemon/planning/stages/order.h"
#include "daemon/planning/stages/plan_builder.h"
#include "daemon/planning/stages/select.h"
#include "daemon/planning/stages/shuffle.h"
#include "daemon/planning/stages/sweep.h"
#include "daemon/planning/stages/unroll.h"
#include "daemon/planning/stages/uses.h"

namespace batchwright {

namespace {

void add_row(BatchFigures& figures, std::uint32_t length, float weight) {
  ++figures.rows;
  figures.batch_length = std::max(figures.batch_length, length);
  figures.frames += length;
  if (weight != 0.0F) return;
  ++figures.unweighted_rows;
  figures.unweighted_frames += length;
}

}  // namespace

/// What is left of the builder: 4 bytes a row and 8 a batch, or 8 a sequence when unrolled; and the
/// uses.
struct EpochPlan::State {
  PlanBuilder builder;
  Unrolled unrolled;
  RowUses uses;  // of batches; unrolled ones have their own
  std::uint32_t world = 1;
  std::uint32_t length_multiple = 0;

  bool is_unrolled() const { return unrolled.lanes() != 0; }

  /// A batch by its place in the order in which they were cut.
  std::span<const std::uint32_t> batch(std::uint32_t cut) const {
    return builder.order.items().subspan(builder.starts[cut],
                                         builder.starts[cut + 1] - builder.starts[cut]);
  }
  BatchFigures figures_of(std::uint32_t cut) const {
    BatchFigures figures;
    for (const std::uint32_t item : batch(cut)) {
      add_row(figures, builder.table.length(item), builder.table.weight(item));
    }
    figures.batch_length = rounded_up(figures.batch_length, length_multiple);
    return figures;
  }

  /// Calls `use` with every row of a batch.
  template <class Use>
  void each_row(BatchIndex index, const Use& use) const {
    if (!is_unrolled()) {
      const std::uint32_t cut = builder.sequence[index.value];
      std::uint32_t number = 0;
      for (const std::uint32_t item : batch(cut)) {
        Row row = builder.table.row(item);
        row.use = uses.of(index.value, builder.starts[cut], number++);
        use(row);
      }
      return;
    }
    const std::uint64_t first = index.value % world * unrolled.lanes();
    for (std::uint64_t lane = first; lane < first + unrolled.lanes(); ++lane) {
      use(unrolled.row(builder.table, index.value / world, lane));
    }
  }
};

namespace {

/// Turns the order of the items into the sequence of the batches.
Result<void> batch_up(PlanBuilder& builder, const PlanSettings& settings, std::uint64_t seed) {
  // Spreading splits batches where they stand in the order, so it comes before their shuffle.
  if (auto done = cut_batches(builder, settings); !done) return done;
  if (auto done = spread_batches(builder, settings); !done) return done;
  return sequence_batches(builder, settings, seed);
}

}  // namespace

Result<EpochPlan> plan_epoch(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             Epoch epoch, std::span<const std::uint64_t> datasets) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  auto builder = begin_plan(lengths, settings, datasets);
  if (!builder) return builder.error();
  if (auto fits = check_capacity(*builder, settings); !fits) return fits.error();
  if (auto reach = check_boundaries(*builder, settings); !reach) return reach.error();
  // As in the papers' code: seed 0's epoch 1 is seed 1's epoch 0 (README.md, "Semantics").
  const std::uint64_t seed = settings.seed + epoch.value;
  if (auto done = select_items(*builder, settings, epoch); !done) return done.error();
  if (auto done = order_items(*builder, settings, seed); !done) return done.error();
  EpochPlan::State state;
  state.world = settings.world;
  state.length_multiple = settings.length_multiple;
  if (settings.lanes != 0) {
    auto unrolled = Unrolled::deal(*builder, settings);
    if (!unrolled) return unrolled.error();
    state.unrolled = std::move(*unrolled);
  } else if (auto done = batch_up(*builder, settings, seed); !done) {
    return done.error();
  } else {
    state.uses = RowUses(*builder);
  }
  state.builder = std::move(*builder);
  return EpochPlan(std::make_shared<EpochPlan::State>(std::move(state)));
}

std::uint64_t EpochPlan::batches() const {
  return state_->is_unrolled() ? state_->unrolled.steps() * state_->world
                               : state_->builder.sequence.size();
}

std::uint64_t EpochPlan::steps() const { return batches() / state_->world; }

std::uint32_t EpochPlan::world() const { return state_->world; }

std::uint32_t EpochPlan::padded_length(std::uint32_t longest) const {
  return rounded_up(longest, state_->length_multiple);
}

void EpochPlan::rows(BatchIndex index, std::vector<Row>& rows) const {
  rows.clear();
  state_->each_row(index, [&rows](const Row& row) { rows.push_back(row); });
}

BatchFigures EpochPlan::figures(BatchIndex index) const {
  if (!state_->is_unrolled()) return state_->figures_of(state_->builder.sequence[index.value]);
  BatchFigures figures;
  state_->each_row(index, [&figures](const Row& row) { add_row(figures, row.length, row.weight); });
  return figures;
}

std::uint32_t EpochPlan::chunks_of(Ordinal ordinal) const {
  const ItemTable& table = state_->builder.table;
  return table.is_chunked() ? table.items_of(static_cast<std::uint32_t>(ordinal.value)) : 0;
}

void EpochPlan::each_figures(
    const std::function<void(BatchIndex, const BatchFigures&)>& use) const {
  if (state_->is_unrolled()) {
    for (std::uint64_t i = 0; i < batches(); ++i) use(BatchIndex{i}, figures(BatchIndex{i}));
    return;
  }
  constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  // In the order of the cut, whose rows lie together in memory: an order of delivery jumps about.
  std::vector<std::uint32_t> index_of(state_->builder.batches(), kNowhere);
  std::uint32_t index = 0;
  for (const std::uint32_t cut : state_->builder.sequence) {
    const bool again = index_of[cut] != kNowhere;  // what remainder = "wrap" repeats
    if (again) use(BatchIndex{index}, state_->figures_of(cut));
    if (!again) index_of[cut] = index;
    ++index;
  }
  for (std::uint32_t cut = 0; cut < index_of.size(); ++cut) {
    if (index_of[cut] != kNowhere) use(BatchIndex{index_of[cut]}, state_->figures_of(cut));
  }
}

PlanCounts EpochPlan::counts() const {
  const PlanBuilder& builder = state_->builder;
  return {builder.left_out, builder.kept, builder.selected, builder.cut_by_padding};
}

std::vector<std::uint32_t> EpochPlan::bucket_limits() const {
  const PlanBuilder& builder = state_->builder;
  if (builder.buckets.span == 0) return builder.buckets.list;
  std::vector<std::uint32_t> limits;
  for (std::uint32_t batch = 0; batch < builder.batches(); ++batch) {  // buckets by growing length
    const std::uint32_t first = builder.order.items()[builder.starts[batch]];
    const std::uint32_t limit = builder.buckets.of(builder.table.length(first));
    if (limits.empty() || limits.back() != limit) limits.push_back(limit);
  }
  return limits;
}

Result<DataUsage> data_usage(const PlanSettings& settings, Epoch epoch) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  const auto sweep = Sweep::make(settings);
  if (!sweep) return sweep.error();
  // Without a number of epochs, training is taken to end with the one that is asked about.
  const std::uint64_t last = settings.epochs == 0 ? epoch.value : settings.epochs - 1;
  return DataUsage{sweep->share(epoch.value), sweep->usage_until(epoch.value),
                   sweep->usage_until(last), sweep->parameter()};
}

namespace {

/// beta of (1/E, 1/l] and lambda of (pi/2E, pi/2l] are what Deng et al. give (equations 6 and 7):
/// with less, the share would still be above 0 at the end of training without a floor.
std::string slow_fall(const PlanSettings& settings, double parameter) {
  const bool linear = settings.select == Select::linear;
  if (settings.epochs == 0 || (linear ? !settings.beta : !settings.lambda)) return {};
  const double least = (linear ? 1.0 : std::numbers::pi / 2) / settings.epochs;
  if (parameter > least) return {};
  return fmt::format(
      "{} = {} is not above {:.4g}, {} / epochs, the least of Deng et al.: the share "
      "falls more slowly than theirs",
      linear ? "beta" : "lambda", parameter, least, linear ? "1" : "pi/2");
}

}  // namespace

std::string plan_note(const PlanSettings& settings) {
  // Only a share that falls can lie below `floor` at its end.
  const bool sweeps = settings.select == Select::linear || settings.select == Select::cosine;
  if (!sweeps || !check_settings(settings)) return {};
  const auto sweep = Sweep::make(settings);
  if (!sweep) return {};
  const std::uint64_t last = settings.flat_after;
  const bool goes_on = settings.epochs == 0 || settings.epochs - 1 > last;
  if (!goes_on || sweep->share(last) >= settings.floor) {
    return slow_fall(settings, sweep->parameter());
  }
  return fmt::format(
      "the share of the sequences falls to {:.3f} in epoch {} and rises to floor = {} after it; a "
      "smaller floor or flat_after avoids that",
      sweep->share(last), last, settings.floor);
}

void each_term(const PlanSettings& settings,
               const std::function<void(std::string_view, const std::string&)>& use) {
  for (const SettingRow& row : setting_rows()) {
    if (row.name == "row_weight") continue;
    if (row.name == "order_file") {
      if (!settings.order_rows) continue;
      const OrderRows& order = *settings.order_rows;
      const bool has_lines = settings.cut == Cut::file;
      use("order_rows", fmt::format("{:016x}", has_lines ? order.line_hash : order.row_hash));
      continue;
    }
    const std::string value = get_setting(settings, row.name);
    if (!value.empty()) use(row.name, value);
  }
}

std::uint64_t settings_hash(const PlanSettings& settings) {
  std::uint64_t hash = kFnv1aBasis;
  const auto add = [&hash](std::string_view text) { hash = fnv1a(hash, text); };
  const auto add_line = [&add](std::string_view name, std::string_view value) {
    add(name);
    add("=");
    add(value);
    add("\n");
  };
  // Other batches from the same settings are another plan: the version is part of the hash.
  add_line("planner", std::to_string(kPlannerVersion));
  each_term(settings, [&](std::string_view name, const std::string& value) {
    // The seed is a part of the fingerprint of its own, so that a mismatch can name it.
    if (name != "seed") add_line(name, value);
  });
  return hash;
}

}  // namespace batchwright
