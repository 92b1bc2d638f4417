// The header of a .npy file.

#include "storage/npy.h"

#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const AlignedInput input(std::as_bytes(std::span(data, size)));
  const auto header = parse_npy_header(input.bytes());
  if (!header) {
    require(header.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  require(header->header_bytes <= size, "a header lies within the file");
  require(dtype_bytes(header->dtype) != 0, "its dtype is known");
  return 0;
}
