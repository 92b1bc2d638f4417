#include "daemon/planning/select.h"

#include <limits>
#include <string>

namespace batchwright {
namespace {

constexpr std::uint32_t kLongest = std::numeric_limits<std::uint32_t>::max() / 2;

/// Whether min_length and max_length let a sequence through.
struct LengthRange {
  std::uint32_t min, max;
  explicit LengthRange(const PlanSettings& s)
      : min(s.min_length), max(s.max_length == 0 ? kLongest : s.max_length) {}
  bool has(std::uint32_t length) const { return length >= min && length <= max; }
};

Error bad_length(std::size_t ordinal, std::uint32_t length) {
  return {ErrorCode::invalid_argument, "sequence " + std::to_string(ordinal) + " has " +
                                           std::to_string(length) +
                                           " frames, allowed: 1 to 2147483647"};
}

Result<void> check_product(std::uint64_t items, std::uint32_t longest) {
  if (items > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible,
                 "an epoch of " + std::to_string(items) + " rows, allowed: up to 4294967295"};
  }
  if (items * longest > std::uint64_t{1} << 62) {
    return Error{ErrorCode::infeasible, std::to_string(items) + " rows of up to " +
                                            std::to_string(longest) +
                                            " frames: their product passes 2^62 frames"};
  }
  return {};
}

}  // namespace

Result<Draft> begin_draft(std::span<const std::uint32_t> lengths, const PlanSettings& settings) {
  if (lengths.empty()) return Error{ErrorCode::invalid_argument, "no sequences to plan"};
  if (lengths.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::invalid_argument,
                 std::to_string(lengths.size()) + " sequences, allowed: up to 4294967295"};
  }
  Draft draft;
  const LengthRange range(settings);
  for (std::size_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    const std::uint32_t length = lengths[ordinal];
    if (length == 0 || length > kLongest) return bad_length(ordinal, length);
    if (!range.has(length)) continue;
    ++draft.kept;
    draft.longest = std::max(draft.longest, length);
  }
  draft.left_out = lengths.size() - draft.kept;
  if (draft.kept == 0) {
    return Error{ErrorCode::infeasible, "min_length = " + std::to_string(range.min) +
                                            " and max_length = " + std::to_string(range.max) +
                                            " leave out all " + std::to_string(lengths.size()) +
                                            " sequences"};
  }
  draft.table = ItemTable(lengths);
  if (settings.chunk != 0) {
    auto table = ItemTable::chunked(lengths, settings.chunk,
                                    settings.hop == 0 ? settings.chunk : settings.hop);
    if (!table) return table.error();
    draft.table = std::move(*table);
    draft.longest = std::min(draft.longest, settings.chunk);
  }
  return draft;
}

Result<void> select_items(Draft& draft, const PlanSettings& settings, Epoch) {
  const LengthRange range(settings);
  const auto lengths = draft.table.sequence_lengths();
  draft.items.reserve(draft.kept);
  for (std::uint32_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    if (range.has(lengths[ordinal])) draft.table.append_items(ordinal, draft.items);
  }
  draft.selected = draft.kept;
  return check_product(draft.items.size(), draft.longest);
}

}  // namespace batchwright
