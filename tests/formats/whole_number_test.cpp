#include "formats/base/text/whole_number.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace batchwright;

TEST_CASE("formats: a whole number is digits and nothing else") {
  CHECK(parse_whole<std::uint32_t>("0") == 0U);
  CHECK(parse_whole<std::uint32_t>("007") == 7U);
  CHECK(parse_whole<std::uint64_t>("18446744073709551615") == UINT64_MAX);
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "1e3", "one", "1,2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_whole<std::uint64_t>(text));
  }
}

TEST_CASE("formats: a number that the type cannot hold is none") {
  CHECK(parse_whole<std::uint16_t>("65535") == 65535);
  CHECK_FALSE(parse_whole<std::uint16_t>("65536"));
  CHECK_FALSE(parse_whole<std::uint64_t>("18446744073709551616"));
}

TEST_CASE("formats: a whole number has the base that is asked for") {
  CHECK(parse_whole<std::uint64_t>("fF", 16) == 255U);
  CHECK(parse_whole<std::uint32_t>("660", 8) == 0660U);
  CHECK_FALSE(parse_whole<std::uint32_t>("668", 8));
}

TEST_CASE("formats: a number is taken off the front of a text, or the text is left") {
  std::string_view text = "10min";
  CHECK(take_whole<std::uint64_t>(text) == 10U);
  CHECK(text == "min");
  CHECK_FALSE(take_whole<std::uint64_t>(text));
  CHECK(text == "min");
  text = "70000s";
  CHECK_FALSE(take_whole<std::uint16_t>(text));
  CHECK(text == "70000s");
}
