#include "daemon/planning/stages/uses.h"

#include <algorithm>

namespace batchwright {
namespace {

std::uint64_t listed_part(const ListedRow& row) {
  return std::uint64_t{row.ordinal} << 32 | row.start;
}

}  // namespace

SameParts::SameParts(const ItemTable& table) : table_(table) {
  if (table.listed() == nullptr) return;
  for (const ListedRow& row : table.listed()->rows) parts_.push_back(listed_part(row));
  std::sort(parts_.begin(), parts_.end());
  parts_.erase(std::unique(parts_.begin(), parts_.end()), parts_.end());
}

std::size_t SameParts::count() const {
  return table_.listed() == nullptr ? table_.items() : parts_.size();
}

std::uint32_t SameParts::of(std::uint32_t item) const {
  if (table_.listed() == nullptr) return item;
  const auto part = listed_part(table_.listed()->rows[item]);
  return static_cast<std::uint32_t>(std::lower_bound(parts_.begin(), parts_.end(), part) -
                                    parts_.begin());
}

RowUses::RowUses(const PlanBuilder& builder)
    : batches_(std::max<std::uint64_t>(builder.batches(), 1)) {
  if (!builder.repeats) return;
  const auto items = builder.order.items();
  uses_.resize(items.size());
  const OrderRows* const listed = builder.table.listed();
  const SameParts same(builder.table);
  std::vector<std::uint32_t> seen(same.count());
  for (std::size_t index = 0; index < builder.sequence.size(); ++index) {
    const std::uint32_t cut = builder.sequence[index];
    const bool is_appended = index >= batches_;
    if (is_appended) appended_starts_.push_back(appended_.size());
    for (std::uint32_t place = builder.starts[cut]; place < builder.starts[cut + 1]; ++place) {
      const bool is_empty = listed != nullptr && !listed->rows[items[place]].has_sequence();
      const std::uint32_t use = is_empty ? 0 : seen[same.of(items[place])]++;
      if (is_appended) {
        appended_.push_back(use);
      } else {
        uses_[place] = use;
      }
    }
  }
}

}  // namespace batchwright
