#include "client/command/top/figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>

#include "client/command/progress.h"

namespace batchwright {
namespace {

namespace json = boost::json;

/// Three digits of what is at least 0.
std::string three_digits(double value) {
  // What rounds up to 10.0 or 100 has a digit less behind the point: the width stays.
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

/// `value` in the largest unit of `units` that leaves at least one; each is `base` of the last.
std::string scaled(double value, double base, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  // 999.5 would be shown as 1000.
  while (unit + 1 < units.size() && value >= base - 0.5) {
    value /= base;
    ++unit;
  }
  // A whole number below the first unit is a count, and needs no digits behind the point.
  const bool whole = unit == 0 && value == std::floor(value);
  const std::string digits = whole ? fmt::format("{:.0f}", value) : three_digits(value);
  return units[unit][0] == '\0' ? digits : digits + " " + units[unit];
}

/// What cannot be a figure (negative, infinite) is 0: a page may come from any program.
double from_0(double value) { return std::isfinite(value) ? std::max(0.0, value) : 0.0; }

}  // namespace

const json::value* at_path(const json::value& from, std::string_view path) {
  const json::value* found = &from;
  while (!path.empty()) {
    // An empty path leads to the value itself, as for the elements of a list of texts.
    const std::size_t dot = std::min(path.find('.'), path.size());
    const auto* object = found->if_object();
    found = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
    if (found == nullptr) return nullptr;
    // The last part has no dot behind it.
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return found;
}

std::optional<double> number_at(const json::value& from, std::string_view path) {
  const json::value* value = at_path(from, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

double number_or_0(const json::value& from, std::string_view path) {
  return number_at(from, path).value_or(0.0);
}

std::string text_at(const json::value& from, std::string_view path) {
  const json::value* value = at_path(from, path);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : printable_ascii({text->data(), text->size()});
}

const json::array& items_at(const json::value& from, std::string_view path) {
  // Returned by reference, so it has to outlive the call.
  static const json::array none;
  const json::value* value = at_path(from, path);
  const auto* array = value == nullptr ? nullptr : value->if_array();
  return array == nullptr ? none : *array;
}

std::string printable_ascii(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0u) == 0x80u) continue;  // the rest of a character that is a '?' already
    out += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return out;
}

std::string count_text(double count) {
  return scaled(from_0(count), 1000, {"", "k", "M", "G", "T"});
}

std::string whole_text(double count) {
  std::string text = fmt::format("{:.0f}", from_0(count));
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string rate_text(double per_second) { return count_text(per_second) + "/s"; }

std::string memory_text(double bytes) {
  return scaled(from_0(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string seconds_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  const double value = from_0(*seconds);
  if (value == 0) return "0 s";
  // 0.9995: what would round to 1000 goes to the next unit.
  if (value < 0.9995e-3) return three_digits(value * 1e6) + " us";
  if (value < 0.9995) return three_digits(value * 1e3) + " ms";
  return value < 60 ? three_digits(value) + " s" : duration_text(value);
}

std::string share_text(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * from_0(*share)) : "-";
}

std::string bar_text(double share, std::size_t columns) {
  if (columns < 3) return {};
  const double full = std::clamp(from_0(share), 0.0, 1.0) * static_cast<double>(columns - 2);
  const auto filled = static_cast<std::size_t>(full);
  return "[" + std::string(filled, '#') + std::string(columns - 2 - filled, '.') + "]";
}

}  // namespace batchwright
