#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/planning/planning.h"

namespace batchwright::testing {

/// Column `column` of a table of tests/data/, of the rows whose column `where` holds `value`.
inline std::vector<std::uint32_t> table_column(const std::string& file, std::size_t column,
                                               std::size_t where, const std::string& value) {
  std::ifstream in(std::string(BATCHWRIGHT_SOURCE) + "/tests/data/" + file);
  REQUIRE(in);
  std::vector<std::uint32_t> lengths;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
    if (cells.at(where) == value) {
      lengths.push_back(static_cast<std::uint32_t>(std::stoul(cells.at(column))));
    }
  }
  return lengths;
}

/// Frames of the training clips of LJSpeech at hop 276.
inline std::vector<std::uint32_t> ljspeech_train() {
  return table_column("ljspeech_frames.tsv", 2, 4, "train");
}

/// Settings from "name=value" texts.
inline PlanSettings settings(std::initializer_list<std::string_view> texts) {
  PlanSettings all;
  for (const std::string_view text : texts) {
    const auto equals = text.find('=');
    const auto set = set_setting(all, text.substr(0, equals), text.substr(equals + 1));
    REQUIRE_MESSAGE(set, text);
  }
  return all;
}

}  // namespace batchwright::testing
