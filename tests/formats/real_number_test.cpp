#include "formats/base/text/real_number.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

using namespace batchwright;

namespace {

std::string by_to_chars(double value) {
  std::array<char, 512> text{};
  const auto [end, code] = std::to_chars(text.data(), text.data() + text.size(), value);
  REQUIRE(code == std::errc{});
  return {text.data(), end};
}

/// Counted, since a check of each would take minutes.
struct Differences {
  std::size_t count = 0;
  std::string first;

  void look_at(double value) {
    const std::string text = real_text(value);
    const auto read = parse_real(text);
    const bool same = text == by_to_chars(value) && read &&
                      std::signbit(*read) == std::signbit(value) &&
                      (*read == value || std::isnan(value));
    if (same) return;
    if (count++ == 0) first = text + ", not " + by_to_chars(value);
  }
};

}  // namespace

TEST_CASE("formats: a number's text is the shortest that reads back, as std::to_chars has it") {
  using Limits = std::numeric_limits<double>;
  Differences found;
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1e-4, 1e5, 1e22, 1e23, 9007199254740993.0,
                             Limits::min(), Limits::denorm_min(), Limits::max(), Limits::infinity(),
                             -Limits::infinity(), Limits::quiet_NaN()}) {
    found.look_at(value);
  }
  std::mt19937_64 draw(1);
  for (int i = 0; i < 100'000; ++i) {
    found.look_at(std::bit_cast<double>(std::uint64_t{draw()}));
    found.look_at(static_cast<double>(draw() >> (draw() % 64)));
  }
  for (int exponent = -10; exponent < 25; ++exponent) {
    for (int digits = 1; digits < 1'000; ++digits) {
      found.look_at(digits * std::pow(10.0, exponent));
      found.look_at(-digits / std::pow(10.0, exponent));
      found.look_at(std::ldexp(digits, 3 * exponent));
    }
  }
  INFO(found.first);
  CHECK(found.count == 0);
}

TEST_CASE("formats: what is no number, or more than one, is read as none") {
  for (const char* text :
       {"", " 1", "1 ", "+1", "1,5", "1.5.2", "0x10", "1e", "1e400", "one", "--1"}) {
    INFO(text);
    CHECK_FALSE(parse_real(text));
  }
  CHECK(parse_real("-1.5e-3") == -0.0015);
  CHECK(parse_real("inf") == std::numeric_limits<double>::infinity());
}
