#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/formats.h"
#include "storage/ingest/files/array.h"

namespace batchwright {

/// The contents of a .npy file's header.
struct NpyHeader {
  Element element = Element::float32;
  bool fortran_order = false;  ///< False where it makes no difference.
  std::vector<std::uint64_t> shape;
  std::size_t header_bytes = 0;  ///< Bytes before the elements.
  bool swapped = false;          ///< The elements are big-endian.
  bool is_bool = false;          ///< They are NumPy's bool; as uint8, 0 or 1.
};

/// Reads the header at the start of `bytes`, format versions 1 to 3, and nothing outside.
/// Errors: invalid_argument: malformed (names the entry), or an element type that is neither listed
/// in Element nor bool.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes);

/// The array that a whole .npy file's bytes hold, in C order whatever the file's order is.
/// Errors: invalid_argument: as parse_npy_header(); more or fewer bytes than the header says.
Result<Array> parse_npy(std::span<const std::byte> bytes);

/// The array of a file. Threads: any.
/// Errors: invalid_argument, naming the file and what is wrong with it.
Result<Array> read_npy(const std::filesystem::path& path);

}  // namespace batchwright
