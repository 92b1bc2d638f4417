// A matrix or vector of a Kaldi archive, and after it the text of a range that is cut from it.

#include "storage/ingest/files/kaldi_range.h"
#include "storage/ingest/files/kaldi_value.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// The rows or columns of a range.
std::uint64_t extent(const KaldiRange::Part& part) { return part.last - part.first + 1; }

void cut(const Array& array, const KaldiRange& range) {
  const auto part = cut_range(array, range);
  if (!part) {
    require(part.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return;
  }
  require(array_bytes(part->element, part->shape) == part->bytes.size(), "a range is whole");
  touch(std::span<const std::byte>(part->bytes));
  if (range.rows) {
    const std::uint64_t rows = part->shape[0];
    const bool shorter = range.rows->last >= array.shape[0];
    require(shorter == !part->remark.empty(), "a shorter range is told");
    require(shorter ? rows < extent(*range.rows) : rows == extent(*range.rows),
            "a range has its rows");
  }
  if (range.columns) require(part->shape[1] == extent(*range.columns), "a range has its columns");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const AlignedInput input(std::as_bytes(std::span(data, size)));
  const auto bytes = kaldi_value_bytes(input.bytes());
  if (!bytes) {
    require(bytes.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  if (*bytes > size) return 0;
  const auto array = parse_kaldi_value(input.bytes().first(*bytes));
  if (!array) {
    require(array.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  require(array_bytes(array->element, array->shape) == array->bytes.size(), "all values are there");
  cut(*array, {KaldiRange::Part{data[0] % 4U, data[0] % 4U + 1}, {}});
  const std::string_view behind(reinterpret_cast<const char*>(data) + *bytes, size - *bytes);
  if (const auto range = parse_kaldi_range(behind)) cut(*array, *range);
  return 0;
}
