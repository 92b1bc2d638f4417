// A .npy file: its header, and the array that it holds.

#include "storage/ingest/files/npy.h"

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
  require(element_bytes(header->element) != 0, "its elements are known");
  const auto array = parse_npy(input.bytes());
  if (!array) return 0;
  require(array->bytes.size() == size - header->header_bytes, "all elements are taken");
  static_cast<void>(not_finite(*array));
  static_cast<void>(cast(*array, DType::float16));
  static_cast<void>(cast(*array, DType::int32));
  return 0;
}
