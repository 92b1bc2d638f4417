#include "client/command/top/table.h"

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowGap = 1;
/// Columns that are so dispensable go before others move together.
constexpr unsigned kLuxury = 9;
/// A name keeps so many columns as long as there is another column to leave out.
constexpr std::size_t kReadableName = 32;

/// Which columns are shown, and how wide.
struct ShownColumns {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;  ///< Width of each column, shown or not.
  std::size_t gap = kGap;

  std::size_t total() const {
    std::size_t sum = shown.empty() ? 0 : gap * (shown.size() - 1);
    for (const std::size_t column : shown) sum += widths[column];
    return sum;
  }
};

ShownColumns measured(const TopTable& table) {
  ShownColumns columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = columns_of(table.columns[i].title);
    for (const auto& row : table.rows) width = std::max(width, columns_of(row[i].text));
    columns.shown.push_back(i);
    columns.widths.push_back(width);
  }
  return columns;
}

/// Leaves out the most dispensable column, of those that are so at least; false when there is none.
bool leave_one_out(const TopTable& table, ShownColumns& columns, unsigned at_least) {
  // Of equals the first one found goes, as max_element() keeps it.
  const auto most = std::max_element(
      columns.shown.begin(), columns.shown.end(), [&](std::size_t a, std::size_t b) {
        return table.columns[a].dispensable < table.columns[b].dispensable;
      });
  if (most == columns.shown.end() || table.columns[*most].dispensable < at_least) return false;
  columns.shown.erase(most);
  return true;
}

ShownColumns fitted(const TopTable& table, std::size_t width) {
  ShownColumns columns = measured(table);
  if (columns.widths.empty()) return columns;
  const std::size_t name = columns.widths[0];
  const auto room = [&] {  // for names
    const std::size_t others = columns.total() - name;
    return width > others ? width - others : 0;
  };
  // In this order: luxury goes, gaps shrink, other columns go, and last the names are cut.
  while (columns.total() > width && leave_one_out(table, columns, kLuxury)) {
  }
  if (columns.total() > width) columns.gap = kNarrowGap;
  while (room() < std::min(name, kReadableName) && leave_one_out(table, columns, 1)) {
  }
  // One column at least, so that the cut shows.
  columns.widths[0] = std::min(name, std::max<std::size_t>(room(), 1));
  return columns;
}

/// Cells are as wide as their columns, except for names that had to be cut: they keep their
/// beginning and their end.
Piece padded(Piece cell, std::size_t width, bool to_the_left) {
  cell.text = cut_within(std::move(cell.text), width);
  const std::string blanks(width - columns_of(cell.text), ' ');
  cell.text = to_the_left ? cell.text + blanks : blanks + cell.text;
  return cell;
}

TopLine row_line(const TopTable& table, const ShownColumns& columns,
                 const std::vector<Piece>& row) {
  TopLine line;
  for (const std::size_t column : columns.shown) {
    if (!line.pieces.empty()) line.pieces.push_back({std::string(columns.gap, ' '), Tone::plain});
    line.pieces.push_back(
        padded(row[column], columns.widths[column], table.columns[column].to_the_left));
  }
  return line;
}

}  // namespace

std::vector<TopLine> TopTable::lines(std::size_t width) const {
  const ShownColumns shown = fitted(*this, width);
  std::vector<Piece> titles;
  for (const TableColumn& column : columns) titles.push_back({column.title, Tone::faint});
  std::vector<TopLine> all{row_line(*this, shown, titles)};
  for (const auto& row : rows) all.push_back(row_line(*this, shown, row));
  return all;
}

}  // namespace batchwright
