// A matrix or vector of a Kaldi archive.

#include "storage/ingest/files/kaldi_value.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const AlignedInput input(std::as_bytes(std::span(data, size)));
  const auto bytes = kaldi_value_bytes(input.bytes());
  if (!bytes) {
    require(bytes.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  static_cast<void>(parse_kaldi_range({reinterpret_cast<const char*>(data), size}));
  if (*bytes > size) return 0;
  const auto array = parse_kaldi_value(input.bytes().first(*bytes));
  if (!array) {
    require(array.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  require(array_bytes(array->element, array->shape) == array->bytes.size(), "all values are there");
  const KaldiRange range{KaldiRange::Part{data[0] % 4U, data[0] % 4U + 1}, {}};
  const auto part = cut_range(*array, range);
  if (part) require(part->shape[0] == 2, "a range has its rows");
  return 0;
}
