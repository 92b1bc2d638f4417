#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace batchwright::test {

/// The table `name` of daemon/stats/REFERENCE.md is `table`, or is made so where the environment
/// has BATCHWRIGHT_WRITE_TABLES.
inline void check_reference(const std::string& name, const std::string& table) {
  const std::string file = BATCHWRIGHT_SOURCE "/daemon/stats/REFERENCE.md";
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string begin = "<!-- " + name + " -->\n";
  const std::string before = text.substr(0, text.find(begin) + begin.size());
  const std::string after = text.substr(text.find("<!-- /" + name + " -->"));
  if (std::getenv("BATCHWRIGHT_WRITE_TABLES") != nullptr) {
    std::ofstream(file) << before << table << after;
    return;
  }
  CHECK_MESSAGE(text == before + table + after,
                "BATCHWRIGHT_WRITE_TABLES=1 build/dev/bin/stats_tests -tc='stats: REFERENCE.md*' "
                "writes the table");
}

}  // namespace batchwright::test
