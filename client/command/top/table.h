#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/command/top/line.h"

namespace batchwright {

struct TableColumn {
  std::string title;
  bool to_the_left = false;  ///< Its cells begin at the same place; others end there.
  /// The rank by which columns are left out for lack of room, largest first; 0: always shown.
  unsigned dispensable = 0;
};

/// A table whose columns are as wide as what stands in them. Where that is wider than the screen,
/// the first column, which holds names, is cut down to what is left, once every column that can be
/// left out has been.
struct TopTable {
  std::vector<TableColumn> columns;
  std::vector<std::vector<Piece>> rows;  ///< As many cells each as there are columns.

  /// The titles, then the rows.
  std::vector<TopLine> lines(std::size_t width) const;
};

}  // namespace batchwright
