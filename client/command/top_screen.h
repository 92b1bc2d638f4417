#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace batchwright {

// What `batchwright top` shows, as a pure function of the daemon's page /stats. Everything is
// printable ASCII, whatever clients call themselves: a column is a byte, and nobody's name can
// steer a terminal.

/// How a piece of text is meant; what that looks like is the terminal's affair.
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

/// What there is to show.
struct TopView {
  std::string address;       ///< Of the daemon's pages.
  boost::json::value stats;  ///< The last page; null when none has come yet.
  std::string trouble;       ///< Why there is no newer page; empty when there is one.
};

struct TopSize {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: as many as it takes.
};

/// At most `size.rows` lines of at most `size.columns` columns. What does not fit is counted:
/// verdicts come first, then rates, slots and times of stages, then clients.
std::vector<TopLine> draw_top(const TopView& view, TopSize size);

}  // namespace batchwright
