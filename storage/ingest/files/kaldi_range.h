#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"

namespace batchwright {

/// Rows and columns of a matrix, or elements of a vector, from the first to the last, which
/// belong to it.
struct KaldiRange {
  struct Part {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::optional<Part> rows;  ///< Nothing: all.
  std::optional<Part> columns;
};

/// Reads "0:9", "0:9,2:4", ",2:4" and ":,2:4". Nothing when it is no range.
std::optional<KaldiRange> parse_kaldi_range(std::string_view text);

/// A part of `array`. As in Kaldi, the last row (or element of a vector) may be named up to three
/// behind the end, since segments are rounded to frames: the part then ends with the array, and has
/// a remark.
/// Errors: invalid_argument, naming the range and what there is.
Result<Array> cut_range(const Array& array, const KaldiRange& range);

}  // namespace batchwright
