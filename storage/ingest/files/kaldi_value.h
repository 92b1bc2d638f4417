#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"

namespace batchwright {

/// The size in bytes of the value of a Kaldi archive that `start` begins with, as far as `start`
/// tells: a number above start.size() asks for that many, and may then ask for more. A value is a
/// matrix or a vector of floats, doubles or int32, a compressed matrix, or any of these as text.
/// Errors: invalid_argument: it is none of them.
Result<std::uint64_t> kaldi_value_bytes(std::span<const std::byte> start);

/// The value that `bytes` hold, which are exactly as many as kaldi_value_bytes() says. Matrices
/// are [rows, columns], vectors [elements]; compressed ones and text become float32, integers
/// int32.
/// Errors: invalid_argument: malformed, or cut off.
Result<Array> parse_kaldi_value(std::span<const std::byte> bytes);

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

/// A part of `array`. Errors: invalid_argument, naming the range and what there is.
Result<Array> cut_range(const Array& array, const KaldiRange& range);

}  // namespace batchwright
