#include "storage/ingest/files/kaldi_range.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace batchwright {
namespace {

/// Kaldi's tolerance: two rows for the windows at the edges, one for the rounding of times.
constexpr std::uint64_t kRowsBehind = 3;

std::optional<KaldiRange::Part> parse_part(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto first = parse_whole<std::uint64_t>(text.substr(0, colon));
  const auto last = parse_whole<std::uint64_t>(text.substr(colon + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return KaldiRange::Part{*first, *last};
}

bool is_all(std::string_view text) { return text.empty() || text == ":"; }

/// The part of `of` rows or columns that is meant: from its first to behind its last.
/// Errors: invalid_argument: it begins behind the end, or ends more than `behind` behind it.
Result<KaldiRange::Part> part_of(const std::optional<KaldiRange::Part>& part, std::string_view what,
                                 std::uint64_t of, std::uint64_t behind) {
  if (!part) return KaldiRange::Part{0, of};
  // Subtracted, not added: the number is the table's, and may be the largest.
  const bool ends_inside = part->last < of || part->last - of < behind;
  if (part->first >= of || !ends_inside) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("range {}:{} of {} {}; the last is {}", part->first, part->last, of,
                             what, of == 0 ? "none" : std::to_string(of - 1))};
  }
  return KaldiRange::Part{part->first, std::min(part->last, of - 1) + 1};
}

}  // namespace

std::optional<KaldiRange> parse_kaldi_range(std::string_view text) {
  const std::size_t comma = text.find(',');
  const std::string_view rows = text.substr(0, comma);
  const std::string_view columns = comma == text.npos ? "" : text.substr(comma + 1);
  KaldiRange range;
  if (!is_all(rows) && !(range.rows = parse_part(rows))) return std::nullopt;
  if (!is_all(columns) && !(range.columns = parse_part(columns))) return std::nullopt;
  return range;
}

Result<Array> cut_range(const Array& array, const KaldiRange& range) {
  const bool is_matrix = array.shape.size() == 2;
  if (range.columns && !is_matrix) {
    return Error{ErrorCode::invalid_argument, "a range of columns, but it is a vector"};
  }
  const std::uint64_t all_columns = is_matrix ? array.shape[1] : 1;
  const auto rows =
      part_of(range.rows, is_matrix ? "rows" : "elements", array.shape[0], kRowsBehind);
  if (!rows) return rows.error();
  const auto columns = part_of(range.columns, "columns", all_columns, 0);
  if (!columns) return columns.error();
  const std::size_t size = element_bytes(array.element);
  const std::uint64_t width = columns->last - columns->first;
  Array made{array.element, {rows->last - rows->first}, {}};
  if (is_matrix) made.shape.push_back(width);
  for (std::uint64_t r = rows->first; r < rows->last; ++r) {
    const auto begin = array.bytes.begin() +
                       static_cast<std::ptrdiff_t>((r * all_columns + columns->first) * size);
    made.bytes.insert(made.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(width * size));
  }
  if (range.rows && range.rows->last >= array.shape[0]) {
    made.remark = "range ends up to three rows after the last, and is cut there";
  }
  return made;
}

}  // namespace batchwright
