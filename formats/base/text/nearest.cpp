#include "formats/base/text/nearest.h"

#include <algorithm>
#include <numeric>

namespace batchwright {

std::size_t edits_between(std::string_view a, std::string_view b) {
  // Wagner and Fischer's table, of which one row is kept; `diagonal` is the value that was
  // overwritten last, of the row above.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& words) {
  std::size_t fewest = std::min<std::size_t>(2, name.size() / 2) + 1;
  std::string_view best;
  for (const std::string_view word : words) {
    // The cost is the product of both lengths, and a name from a file may be of any.
    const std::size_t distance = edits_between(name.substr(0, 64), word);
    if (distance >= fewest) continue;
    fewest = distance;
    best = word;
  }
  return best;
}

}  // namespace batchwright
