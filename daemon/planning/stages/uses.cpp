#include "daemon/planning/stages/uses.h"

#include <algorithm>

namespace batchwright {

RowUses::RowUses(const Draft& draft) : batches_(std::max<std::uint64_t>(draft.batches(), 1)) {
  if (!draft.repeats) return;
  const auto items = draft.order.items();
  uses_.resize(items.size());
  std::vector<std::uint32_t> seen(draft.table.items());
  for (std::size_t index = 0; index < draft.sequence.size(); ++index) {
    const std::uint32_t cut = draft.sequence[index];
    const bool is_appended = index >= batches_;
    if (is_appended) appended_starts_.push_back(appended_.size());
    for (std::uint32_t place = draft.starts[cut]; place < draft.starts[cut + 1]; ++place) {
      const std::uint32_t use = seen[items[place]]++;
      if (is_appended) {
        appended_.push_back(use);
      } else {
        uses_[place] = use;
      }
    }
  }
}

}  // namespace batchwright
