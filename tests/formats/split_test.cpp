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

TEST_CASE("formats: lines end with their ends, and the last one with the text") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_lines("").empty());
  CHECK(split_lines("a") == Parts{"a"});
  CHECK(split_lines("a\nb\n") == Parts{"a", "b"});
  CHECK(split_lines("\na\n\n") == Parts{"", "a", ""});
}

TEST_CASE("formats: words stand between blanks, however many") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_words("").empty());
  CHECK(split_words(" \t ").empty());
  CHECK(split_words("a") == Parts{"a"});
  CHECK(split_words("  a \t b") == Parts{"a", "b"});
  CHECK(split_words("a b ") == Parts{"a", "b"});
}
