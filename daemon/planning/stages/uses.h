#pragma once

#include <cstdint>
#include <vector>

#include "daemon/planning/stages/plan_builder.h"

namespace batchwright {

/// Items that are the same part of the same sequence have the same number: where an order file
/// names one several times.
class SameParts {
 public:
  /// 8 bytes an item of an order file, otherwise none. `table` outlives it.
  explicit SameParts(const ItemTable& table);

  std::size_t count() const;  ///< Numbers are below it.
  std::uint32_t of(std::uint32_t item) const;

 private:
  const ItemTable& table_;
  std::vector<std::uint64_t> parts_;  // growing
};

/// How often each row of an epoch came before in it: where a mixed dataset begins again, an order
/// file repeats itself, or remainder = wrap appends batches. It takes 4 bytes a row in the first
/// two cases, and nothing otherwise.
class RowUses {
 public:
  RowUses() = default;
  /// Of a builder whose batches are in their sequence. 4 bytes a sequence or chunk meanwhile.
  explicit RowUses(const PlanBuilder& builder);

  /// Of row `row` of batch `index`, whose first row has place `first` in the order. Threads: any.
  std::uint32_t of(std::uint64_t index, std::uint32_t first, std::uint32_t row) const {
    // The batches that are appended are the first ones, in their order.
    if (uses_.empty()) return static_cast<std::uint32_t>(index / batches_);
    if (index < batches_) return uses_[first + row];
    return appended_[appended_starts_[index - batches_] + row];
  }

 private:
  std::uint64_t batches_ = 1;        // that were cut
  std::vector<std::uint32_t> uses_;  // by place in the order
  std::vector<std::uint32_t> appended_;
  std::vector<std::size_t> appended_starts_;  // of the batches
};

}  // namespace batchwright
