#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/planning/planning.h"

namespace batchwright::testing {

/// Column `column` of a table of tests/data/; of all rows, or those with `value` in `where`.
inline std::vector<std::uint32_t> column_of(const std::string& file, std::size_t column,
                                            std::size_t where, std::string_view value) {
  std::ifstream in(std::string(BATCHWRIGHT_SOURCE) + "/tests/data/" + file);
  std::vector<std::uint32_t> lengths;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
    if (value.empty() || cells.at(where) == value) {
      lengths.push_back(static_cast<std::uint32_t>(std::stoul(cells.at(column))));
    }
  }
  return lengths;
}

/// The report of one epoch; settings as "order=sorted cut=dynamic".
inline PlanReport report_of(const std::vector<std::uint32_t>& lengths, const std::string& texts,
                            std::uint64_t seed) {
  PlanSettings settings;
  settings.seed = seed;
  std::istringstream words(texts);
  for (std::string text; words >> text;) {
    const auto equals = text.find('=');
    if (!set_setting(settings, text.substr(0, equals), text.substr(equals + 1))) std::abort();
  }
  const auto plan = plan_epoch(lengths, settings, Epoch{0});
  if (!plan) std::abort();
  return report_plan(*plan);
}

}  // namespace batchwright::testing
