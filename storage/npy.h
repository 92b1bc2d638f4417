#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// What the header of a .npy file says.
struct NpyHeader {
  DType dtype = DType::none;
  std::vector<std::uint64_t> shape;
  std::size_t header_bytes = 0;  ///< Where the elements begin.
};

/// Reads the header at the start of `bytes`, format versions 1 to 3, and nothing outside.
/// Errors: invalid_argument: malformed, Fortran order, or an element type that no dataset holds.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes);

/// An array of [T, D...], read whole.
struct NpyArray {
  NpyHeader header;
  std::vector<std::byte> elements;  ///< Row-major.
};

/// Header, or header and elements, of a file. Threads: any.
/// Errors: invalid_argument, naming the file and what is wrong with it; also when it is longer or
/// shorter than its header says.
Result<NpyHeader> read_npy_header(const std::filesystem::path& path);
Result<NpyArray> read_npy(const std::filesystem::path& path);

}  // namespace batchwright
