#include "daemon/config/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace batchwright {

namespace {

/// Bytes of a text such as "512", "1536 KiB" or "2GiB"; empty when it is none or too large.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  const auto number = take_whole<std::uint64_t>(text);
  if (!number || text.empty()) return number;
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::find(kUnits.begin(), kUnits.end(), text);
  if (unit == kUnits.end()) return std::nullopt;
  // Each unit is 1024 of the one before it.
  const auto shift = 10 * static_cast<unsigned>(unit - kUnits.begin());
  // Asked before the shift, which would lose the upper bits in silence.
  if (*number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

/// A text such as "250ms", "10 s", "5min" or "1h"; empty when it is none or longer than `max`.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text,
                                                        std::chrono::milliseconds max) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
      {{"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}}};
  const auto number = take_whole<std::uint64_t>(text);
  if (!number) return std::nullopt;
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [text](const auto& each) { return each.first == text; });
  if (unit == kUnits.end()) return std::nullopt;
  // By division, since the product may not fit.
  if (*number > static_cast<std::uint64_t>(max.count()) / unit->second) return std::nullopt;
  return std::chrono::milliseconds(*number * unit->second);
}

/// In quotes, control characters as escapes, at most 80 bytes.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + (text.size() > 80 ? "\"..." : "\"");
}

}  // namespace

Fault read_bool(const ConfigNode& node, bool& out) {
  const bool* value = std::get_if<bool>(&node.value);
  if (value == nullptr) return &node;
  out = *value;
  return nullptr;
}

Fault read_text(const ConfigNode& node, std::string& out) {
  const std::string* text = node.text();
  // The kernel would see what stands before a zero byte, and nothing of what follows.
  if (text == nullptr || text->find('\0') != std::string::npos) return &node;
  out = *text;
  return nullptr;
}

Fault read_texts(const ConfigNode& node, std::vector<std::string>& out) {
  // One text stands for a list of one.
  std::vector<std::string> texts(1);
  if (const ConfigNode::List* list = node.list()) {
    texts.resize(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (const Fault fault = read_text((*list)[i], texts[i])) return fault;
    }
  } else if (const Fault fault = read_text(node, texts[0])) {
    return fault;
  }
  if (texts.empty()) return &node;
  out = std::move(texts);
  return nullptr;
}

Fault read_list(const ConfigNode& node, std::vector<std::string>& out) {
  if (node.list() != nullptr && node.list()->empty()) {
    out.clear();
    return nullptr;
  }
  return read_texts(node, out);
}

Fault read_whole(const ConfigNode& node, std::uint32_t& out, std::uint32_t min, std::uint32_t max) {
  const std::int64_t* value = std::get_if<std::int64_t>(&node.value);
  if (value == nullptr || *value < min || *value > max) return &node;
  out = static_cast<std::uint32_t>(*value);
  return nullptr;
}

Fault read_real(const ConfigNode& node, double& out) {
  // TOML tells 1 from 1.0; people who write a share or a padding do not.
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&node.value)) {
    out = static_cast<double>(*whole);
    return nullptr;
  }
  const double* value = std::get_if<double>(&node.value);
  // TOML has inf and nan, and no key has a use for them.
  if (value == nullptr || !std::isfinite(*value)) return &node;
  out = *value;
  return nullptr;
}

Fault read_probability(const ConfigNode& node, double& out) {
  double probability = 0;
  if (const Fault fault = read_real(node, probability)) return fault;
  if (probability < 0 || probability > 1) return &node;
  out = probability;
  return nullptr;
}

Fault read_bytes(const ConfigNode& node, std::uint64_t& out, std::uint64_t min) {
  std::optional<std::uint64_t> bytes;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&node.value); whole && *whole >= 0) {
    bytes = static_cast<std::uint64_t>(*whole);
  } else if (const std::string* text = node.text()) {
    bytes = parse_bytes(*text);
  }
  if (!bytes || *bytes < min) return &node;
  out = *bytes;
  return nullptr;
}

Fault read_path(const ConfigNode& node, std::filesystem::path& out) {
  std::string path;
  if (const Fault fault = read_text(node, path)) return fault;
  out = std::move(path);
  return nullptr;
}

Fault read_duration(const ConfigNode& node, std::chrono::milliseconds& out,
                    std::chrono::milliseconds max) {
  // A number without a unit is refused: seconds and milliseconds are easily confused.
  const std::string* text = node.text();
  const auto time = text == nullptr ? std::nullopt : parse_duration(*text, max);
  if (!time) return &node;
  out = *time;
  return nullptr;
}

bool is_name(std::string_view text, std::size_t most_bytes) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return text.size() <= most_bytes && text.find_first_not_of(kLetters) == std::string_view::npos;
}

std::string describe_found(const ConfigNode& node) {
  if (const std::string* text = node.text()) return in_quotes(*text);
  if (const ConfigNode::List* list = node.list()) {
    return list->empty() ? "an empty list" : fmt::format("a list of {}", list->size());
  }
  if (node.table() != nullptr) return "a table";
  const auto text = plain_text(node);
  // All other types have their text by now.
  if (!text) return "a date or time";
  // As it was written: 16.0 is no whole number.
  const bool real = std::holds_alternative<double>(node.value);
  return real && text->find_first_not_of("-0123456789") == std::string::npos ? *text + ".0" : *text;
}

Result<std::string> plain_text(const ConfigNode& node) {
  if (const bool* value = std::get_if<bool>(&node.value)) return fmt::format("{}", *value);
  if (const auto* value = std::get_if<std::int64_t>(&node.value)) return fmt::format("{}", *value);
  if (const double* value = std::get_if<double>(&node.value)) return fmt::format("{}", *value);
  if (const std::string* text = node.text()) return *text;
  const ConfigNode::List* list = node.list();
  // For [feed.plan], whose lists are of numbers: no element has a comma in it.
  const Error refused{ErrorCode::invalid_argument, "no plain value"};
  if (list == nullptr) return refused;
  std::string joined;
  for (const ConfigNode& element : *list) {
    if (element.list() != nullptr) return refused;
    const auto text = plain_text(element);
    if (!text) return text.error();
    joined += (joined.empty() ? "" : ",") + *text;
  }
  return joined;
}

}  // namespace batchwright
