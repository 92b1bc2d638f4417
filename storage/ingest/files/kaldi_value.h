#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace batchwright
