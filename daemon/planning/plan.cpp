#include "daemon/planning/plan.h"

#include <algorithm>

#include "daemon/planning/cut.h"
#include "daemon/planning/draft.h"
#include "daemon/planning/order.h"
#include "daemon/planning/select.h"
#include "daemon/planning/shuffle.h"

namespace batchwright {

/// What is left of the draft: 4 bytes a row, and 8 a batch.
struct EpochPlan::State {
  Draft draft;
  std::uint32_t world = 1;

  std::span<const std::uint32_t> batch(BatchIndex index) const {
    const std::uint32_t cut = draft.sequence[index.value];
    return std::span(draft.items)
        .subspan(draft.starts[cut], draft.starts[cut + 1] - draft.starts[cut]);
  }
};

Result<EpochPlan> plan_epoch(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                             Epoch epoch) {
  if (auto checked = check_settings(settings); !checked) return checked.error();
  auto draft = begin_draft(lengths, settings);
  if (!draft) return draft.error();
  if (auto fits = check_capacity(*draft, settings); !fits) return fits.error();
  const std::uint64_t seed = settings.seed + epoch.value;
  if (auto done = select_items(*draft, settings, epoch); !done) return done.error();
  if (auto done = order_items(*draft, settings, seed); !done) return done.error();
  if (auto done = cut_batches(*draft, settings); !done) return done.error();
  if (auto done = spread_batches(*draft, settings); !done) return done.error();
  if (auto done = sequence_batches(*draft, settings, seed); !done) return done.error();
  return EpochPlan(
      std::make_shared<EpochPlan::State>(EpochPlan::State{std::move(*draft), settings.world}));
}

std::uint64_t EpochPlan::batches() const { return state_->draft.sequence.size(); }

std::uint64_t EpochPlan::steps() const { return batches() / state_->world; }

std::uint32_t EpochPlan::world() const { return state_->world; }

void EpochPlan::rows(BatchIndex index, std::vector<Row>& rows) const {
  rows.clear();
  for (const std::uint32_t item : state_->batch(index)) {
    rows.push_back(state_->draft.table.row(item));
  }
}

BatchFigures EpochPlan::figures(BatchIndex index) const {
  BatchFigures figures;
  for (const std::uint32_t item : state_->batch(index)) {
    const std::uint32_t length = state_->draft.table.length(item);
    ++figures.rows;
    figures.batch_length = std::max(figures.batch_length, length);
    figures.frames += length;
  }
  return figures;
}

PlanCounts EpochPlan::counts() const {
  return {state_->draft.left_out, state_->draft.kept, state_->draft.selected};
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
