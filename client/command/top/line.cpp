#include "client/command/top/line.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace batchwright {
namespace {

/// Whether the byte is not the first one of its character in UTF-8, and so takes no column.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

/// The bytes of the first `columns` columns.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  // To the end of the last character, be its bytes more than one.
  while (at < text.size() && (continues(text[at]) || columns > 0)) {
    if (!continues(text[at])) --columns;
    ++at;
  }
  return at;
}

}  // namespace

std::size_t TopLine::columns() const {
  std::size_t sum = 0;
  for (const Piece& piece : pieces) sum += columns_of(piece.text);
  return sum;
}

std::string TopLine::text() const {
  std::string all;
  for (const Piece& piece : pieces) all += piece.text;
  return all;
}

void append(std::vector<TopLine>& lines, std::vector<TopLine> more) {
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

TopLine line(std::string text, Tone tone) { return {{{std::move(text), tone}}}; }

std::size_t columns_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

std::string cut_to(std::string text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  if (columns == 0) return {};
  // One column is left for the mark.
  text.resize(bytes_of(text, columns - 1));
  return text += kCut;
}

std::string cut_within(std::string text, std::size_t columns) {
  const std::size_t all = columns_of(text);
  if (all <= columns) return text;
  if (columns == 0) return {};
  // Names that differ at the end only, as jobs of one series do, stay apart.
  const std::size_t end = (columns - 1) / 2;
  const std::string_view tail = std::string_view(text).substr(bytes_of(text, all - end));
  return text.substr(0, bytes_of(text, columns - 1 - end)) + std::string(kCut) + std::string(tail);
}

void cut_to(TopLine& line, std::size_t columns) {
  std::size_t left = columns;
  for (Piece& piece : line.pieces) {
    piece.text = cut_to(std::move(piece.text), left);
    // Pieces behind the cut become empty, and keep their place.
    left -= columns_of(piece.text);
  }
}

std::string in_ascii(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (continues(text[at])) continue;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      out += text[at];
    } else {
      out += rest.starts_with(kCut)          ? '~'
             : rest.starts_with(kNone)       ? '-'
             : rest.starts_with(kAscending)  ? '^'
             : rest.starts_with(kDescending) ? 'v'
                                             : '?';
    }
  }
  return out;
}

std::vector<TopLine> wrapped(std::string_view text, std::size_t columns, Tone tone) {
  std::vector<TopLine> lines;
  // Ten columns at least: on a sliver of a screen the lines are cut, not endlessly many.
  const std::size_t room = std::max<std::size_t>(columns, 12) - 2;
  while (!text.empty()) {
    std::size_t end = bytes_of(text, room);
    if (end < text.size()) {
      const std::size_t blank = text.rfind(' ', end);
      // A word longer than a line, such as a path, is broken where the line ends.
      if (blank != std::string_view::npos && blank > 0) end = blank;
    }
    lines.push_back(line("  " + std::string(text.substr(0, end)), tone));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

}  // namespace batchwright
