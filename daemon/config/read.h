#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config/node.h"

namespace batchwright {

// Values of the file into fields. Each returns the node at fault (the value, or an element of
// it), null when there is none; the field is set only in the second case.
using Fault = const ConfigNode*;

Fault read_bool(const ConfigNode& node, bool& out);
Fault read_text(const ConfigNode& node, std::string& out);
/// A text, or a list of at least one.
Fault read_texts(const ConfigNode& node, std::vector<std::string>& out);
/// A text, or a list of any number.
Fault read_list(const ConfigNode& node, std::vector<std::string>& out);
Fault read_whole(const ConfigNode& node, std::uint32_t& out, std::uint32_t min, std::uint32_t max);
template <std::uint32_t kMin, std::uint32_t kMax>
Fault read_whole(const ConfigNode& node, std::uint32_t& out) {
  return read_whole(node, out, kMin, kMax);
}
template <std::uint32_t kMin, std::uint32_t kMax>
Fault read_count(const ConfigNode& node, std::uint64_t& out) {
  std::uint32_t whole = 0;
  if (const Fault fault = read_whole(node, whole, kMin, kMax)) return fault;
  out = whole;
  return nullptr;
}
/// A whole or a broken number, finite.
Fault read_real(const ConfigNode& node, double& out);
/// A number from 0 to 1.
Fault read_probability(const ConfigNode& node, double& out);
/// Bytes: a whole number, or text with a unit such as "2GiB". At least `min`.
Fault read_bytes(const ConfigNode& node, std::uint64_t& out, std::uint64_t min);
/// The path of a file, or "" for none.
Fault read_path(const ConfigNode& node, std::filesystem::path& out);
/// A time: text such as "10s", a whole number with one of the units ms, s, min, h. At most `max`.
Fault read_duration(const ConfigNode& node, std::chrono::milliseconds& out,
                    std::chrono::milliseconds max);

/// One of the words of a table.
template <class T, class Words>
Fault read_word_of(const ConfigNode& node, T& out, const Words& words) {
  const std::string* text = node.text();
  for (const auto& [word, value] : words) {
    if (text == nullptr || *text != word) continue;
    out = value;
    return nullptr;
  }
  return &node;
}
template <class T>
Fault read_word(const ConfigNode& node, T& out,
                std::initializer_list<std::pair<std::string_view, T>> words) {
  return read_word_of(node, out, words);
}

/// Whether a text is of letters, digits, "_", "." and "-" alone, and at most so long.
bool is_name(std::string_view text, std::size_t most_bytes);

/// The value as people write it, for messages: one line, cut when it is long.
std::string describe_found(const ConfigNode& node);

/// The value as plain text, elements of a list with commas between.
/// Errors: invalid_argument for tables, dates and lists within lists.
Result<std::string> plain_text(const ConfigNode& node);

}  // namespace batchwright
