#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// A row that an order file names.
struct ListedRow {
  /// The ordinal of a row without a sequence: a lane that has run out.
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t ordinal = kNone;
  std::uint32_t start = 0;
  std::uint32_t frames = 0;  ///< 0: the whole sequence, as long as it is.

  bool has_sequence() const { return ordinal != kNone; }
};

/// The rows of an order file in their order, as order = file plans them. Memory: 12 bytes a row, 8
/// a line, and 4 a row where there are weights.
struct OrderRows {
  std::string file;  ///< For messages.
  std::vector<ListedRow> rows;
  std::vector<std::uint32_t> line_starts;   ///< The first row of each line, and behind it the end.
  std::vector<std::uint32_t> line_numbers;  ///< Places of these lines in the file, from 1.
  std::vector<float> weights;               ///< One a row; empty: all are 1.
  std::vector<bool> own_weights;   ///< Rows whose weight the file gives; empty: it gives none.
  std::uint64_t sequences = 0;     ///< Different ones.
  bool repeats = false;            ///< Some part of a sequence comes more than once.
  bool has_parts = false;          ///< Some row may be less than its sequence.
  std::uint64_t rows_without = 0;  ///< Rows without a sequence.
  std::uint64_t row_hash = 0;      ///< Of what the rows say, by note_hashes().
  std::uint64_t line_hash = 0;     ///< Of that, and of which rows make a line.

  std::size_t lines() const { return line_numbers.size(); }
  float weight(std::size_t row) const { return weights.empty() ? 1.0F : weights[row]; }
  /// "order file PATH, line 3, row 2", for a message about a row.
  std::string place_of(std::size_t row) const;
};

/// What an order file may name.
struct OrderNames {
  std::uint64_t sequences = 0;
  /// The ordinal of a key; nothing where there is none. Null: the sequences have no keys.
  std::function<Result<std::optional<std::uint64_t>>(std::string_view key)> find;
};

/// A line of an order file has at most so many bytes.
inline constexpr std::size_t kMostOrderLineBytes = std::size_t{1} << 24;

/// The rows that the text of an order file names. DEFINITIONS.md, "Order files", has its form.
/// `file` stands in messages.
/// Errors: bad_configuration, with file, line, row, what was found and what is allowed; those of
/// names.find.
Result<OrderRows> parse_order(std::string_view text, std::string file, const OrderNames& names);

/// Computes the hashes again, after weights have changed. They say nothing of the file's name, nor
/// of whether it has keys or ordinals.
void note_hashes(OrderRows& order);

}  // namespace batchwright
