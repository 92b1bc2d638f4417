#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace batchwright {

/// The parts of `text` between separators, empty ones included: one more than separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

/// The lines of `text`, without their ends. One that ends the text needs no end.
inline std::vector<std::string_view> split_lines(std::string_view text) {
  auto lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// The words of a line, between blanks and tabs.
inline std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace batchwright
