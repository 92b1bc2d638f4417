#include "daemon/delivery/feed/plans/plan_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace batchwright {

std::string describe_sequences(const PlannedEpoch& epoch, const PlanSettings& settings) {
  const PlanCounts counts = epoch.source->plan.counts();
  const std::uint64_t all = epoch.source->snapshot->sequences();
  std::vector<std::string> others;
  std::uint64_t used = counts.selected;
  if (counts.left_out != 0) {
    others.push_back(fmt::format("{} left out by min_length and max_length", counts.left_out));
  }
  if (counts.selected < counts.kept) {
    others.push_back(fmt::format("{} not drawn by select", counts.kept - counts.selected));
  }
  // A row is a sequence, but in chunks and lanes, of which a sequence has many.
  const bool rows_are_sequences = settings.chunk == 0 && settings.lanes == 0;
  if (rows_are_sequences && epoch.totals.sequences < used) {
    const char* why = settings.last == LastBatch::drop ? "last and remainder" : "remainder";
    others.push_back(fmt::format("{} dropped by {}", used - epoch.totals.sequences, why));
    used = epoch.totals.sequences;
  }
  if (others.empty()) return fmt::format("{} sequences", all);
  return fmt::format("{} of {} sequences ({})", used, all, fmt::join(others, ", "));
}

}  // namespace batchwright
