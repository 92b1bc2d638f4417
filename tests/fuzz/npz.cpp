// A .npz file. libarchive reads the zip archive, and its own faults show here, too.

#include "storage/ingest/files/npz.h"

#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const AlignedInput input(std::as_bytes(std::span(data, size)));
  const auto arrays = parse_npz(input.bytes(), [](std::string_view) { return true; });
  if (!arrays) {
    require(arrays.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  for (const NamedArray& each : *arrays) {
    require(!each.name.empty(), "an array has a name");
    touch(std::span<const std::byte>(each.array.bytes));
  }
  return 0;
}
