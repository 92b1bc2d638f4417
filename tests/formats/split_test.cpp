#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "formats/formats.h"

using namespace batchwright;

TEST_CASE("formats: a text has one part more than separators") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("", ',') == Parts{""});
  CHECK(split("a", ',') == Parts{"a"});
  CHECK(split("a,b", ',') == Parts{"a", "b"});
  CHECK(split(",a,,", ',') == Parts{"", "a", "", ""});
}
