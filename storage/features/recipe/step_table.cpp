#include "storage/features/recipe/step_table.h"

namespace batchwright {

StepTable::StepTable(
    std::uint64_t longest, std::size_t functions,
    const std::function<std::uint64_t(std::uint64_t length, std::size_t function)>& value)
    : functions_(functions), cells_(cells(longest, functions), kUnknown) {
  for (std::size_t at = 0; at < cells_.size(); ++at) {
    const std::uint64_t begin = at / functions * kBlock;
    const std::size_t function = at % functions;
    const std::uint64_t first = value(begin, function);
    const std::uint64_t last = value(begin + kBlock - 1, function);
    if (last - first > 1 || first >= kUnknown >> kStepBits) continue;
    // `low` has the first value, `high` the last or is the end.
    std::uint64_t low = 0;
    std::uint64_t high = last == first ? kBlock : kBlock - 1;
    while (last != first && high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (value(begin + middle, function) == first ? low : high) = middle;
    }
    cells_[at] = static_cast<std::uint32_t>(first << kStepBits | high);
  }
}

}  // namespace batchwright
