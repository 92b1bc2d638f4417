#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright {

// A line of text for a terminal. It is printable ASCII, whatever clients call themselves, except
// for the four characters below, each one column wide: no name can steer a terminal.

inline constexpr std::string_view kCut = "\u2026";   ///< Stands for what was cut off.
inline constexpr std::string_view kNone = "\u2013";  ///< Stands for a figure that there is none of.
inline constexpr std::string_view kAscending =
    "\u25b2";  ///< The mark behind the column that rows are sorted by.
inline constexpr std::string_view kDescending = "\u25bc";  ///< The same, the largest first.

/// The role of a piece of text; its looks are up to the terminal.
enum class Tone : unsigned char { plain, strong, faint, good, warning, bad };

struct Piece {
  std::string text;
  Tone tone = Tone::plain;
};

struct TopLine {
  std::vector<Piece> pieces;

  std::size_t columns() const;
  std::string text() const;
};

/// Puts `more` behind `lines`.
void append(std::vector<TopLine>& lines, std::vector<TopLine> more);

/// A line of one piece.
TopLine line(std::string text, Tone tone = Tone::plain);

/// Columns that UTF-8 text takes; see above for what it may hold.
std::size_t columns_of(std::string_view text);
/// Text of at most `columns`, with kCut at its end where it is longer.
std::string cut_to(std::string text, std::size_t columns);
/// The same with kCut in its middle.
std::string cut_within(std::string text, std::size_t columns);
/// A line of at most `columns`.
void cut_to(TopLine& line, std::size_t columns);
/// Such text in ASCII, column by column, for what takes nothing else.
std::string in_ascii(std::string_view text);
/// Text over lines of at most `columns`, each with two blanks in front. Breaks between words where
/// there is a blank.
std::vector<TopLine> wrapped(std::string_view text, std::size_t columns, Tone tone = Tone::plain);

struct TopSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

}  // namespace batchwright
