#include "formats/base/text/real_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace batchwright {
namespace {

/// A finite number as 0.DIGITS times a power of ten, without zeros at either end.
struct Decimal {
  std::string digits;
  int power = 0;
};

/// Of what fmt writes, which has the fewest digits: "1.5e-05", "0.015", "1500".
Decimal decimal_of(std::string_view text) {
  Decimal found;
  const std::size_t end = std::min(text.find('e'), text.size());
  if (end < text.size()) {
    const bool minus = text[end + 1] == '-';
    std::from_chars(text.data() + end + 2, text.data() + text.size(), found.power);
    if (minus) found.power = -found.power;
  }
  const std::string_view mantissa = text.substr(0, end);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  found.power += static_cast<int>(point);
  found.digits = mantissa.substr(0, point);
  if (point < mantissa.size()) found.digits += mantissa.substr(point + 1);
  const std::size_t zeros = found.digits.find_first_not_of('0');
  found.digits.erase(0, zeros);
  found.power -= static_cast<int>(zeros);
  found.digits.erase(found.digits.find_last_not_of('0') + 1);
  return found;
}

std::string with_exponent(const Decimal& number) {
  const std::string_view digits = number.digits;
  const int exponent = number.power - 1;
  return fmt::format("{}{}{}e{}{:02}", digits.substr(0, 1), digits.size() > 1 ? "." : "",
                     digits.substr(1), exponent < 0 ? '-' : '+', std::abs(exponent));
}

std::string without_exponent(const Decimal& number, double value) {
  const std::string& digits = number.digits;
  if (number.power <= 0)
    return "0." + std::string(static_cast<std::size_t>(-number.power), '0') + digits;
  const auto whole = static_cast<std::size_t>(number.power);
  // Beyond what a double counts one by one, all digits of its value and not zeros.
  if (whole >= digits.size()) return fmt::format("{:.0f}", value);
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  return code == std::errc{} && rest == end ? std::optional(value) : std::nullopt;
}

std::string real_text(double value) {
  const std::string_view sign = std::signbit(value) ? "-" : "";
  const double size = std::fabs(value);
  if (!(size > 0) || std::isinf(size)) return fmt::format("{}", value);
  const Decimal number = decimal_of(fmt::format("{}", size));
  const std::string fixed = without_exponent(number, size);
  const std::string scientific = with_exponent(number);
  return fmt::format("{}{}", sign, fixed.size() <= scientific.size() ? fixed : scientific);
}

}  // namespace batchwright
