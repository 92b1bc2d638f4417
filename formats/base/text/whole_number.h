#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace batchwright {

/// The whole number that `text` begins with, and takes it off; empty, and `text` as it was, when
/// it begins with none or with one that T cannot hold. No sign, no blank, no prefix is read.
template <std::unsigned_integral T>
std::optional<T> take_whole(std::string_view& text, int base = 10) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number, base);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

/// `text` as a whole number; empty when it is anything else, or greater than T can hold.
template <std::unsigned_integral T>
std::optional<T> parse_whole(std::string_view text, int base = 10) {
  const std::optional<T> number = take_whole<T>(text, base);
  return text.empty() ? number : std::nullopt;
}

}  // namespace batchwright
