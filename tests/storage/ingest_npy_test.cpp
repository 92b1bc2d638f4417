#include <doctest/doctest.h>

#include <cstring>

#include "tests/storage/ingest_place.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A .npy file of version 1.0: 128 bytes of header, then that many others.
std::string npy(const std::string& descr, const std::string& shape, std::size_t bytes) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize(117, ' ');
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += text + "\n";
  for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i % 61);
  return file;
}

}  // namespace

TEST_CASE("storage: arrays go into a dataset as they are") {
  const Place place;
  write_file(place.in("x/1.npy"), npy("<i2", "(4, 3)", 24));
  write_file(place.in("x/2.npy"), npy("<i2", "(2, 3)", 12));
  REQUIRE(place.take({}, false));
  const auto snapshot = place.snapshot();
  CHECK(place.keys() == Keys{"x/1", "x/2"});
  CHECK(snapshot->schema().fields[0].dtype == DType::int16);
  CHECK(snapshot->schema().fields[0].shape == std::vector<std::uint32_t>{3});
  CHECK(snapshot->lengths()[1] == 2);
  const auto bytes = snapshot->record(Ordinal{0})->field(0).bytes;
  CHECK(std::memcmp(bytes.data(), npy("", "", 24).data() + 128, 24) == 0);
}

TEST_CASE("storage: an array that does not fit is named with what it is and should be") {
  const Place place;
  write_file(place.in("1.npy"), npy("<f4", "(5,)", 20));
  How how;
  how.on_error = OnError::skip;
  const auto refusal = [&place, &how](const std::string& bytes) {
    write_file(place.in("2.npy"), bytes);
    std::filesystem::remove_all(place.out());
    const auto report = place.take(how, false);
    REQUIRE(report);
    REQUIRE(report->skipped.size() == 1);
    CHECK(report->skipped[0].find(place.in("2.npy").string() + ": ") == 0);
    return report->skipped[0];
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(
      has(refusal(npy("<f2", "(5,)", 10)), "float16 [T], but the dataset's is float32 [T], which"));
  CHECK(has(refusal(npy("<f4", "(5, 2)", 40)), "float32 [T, 2], but"));
  CHECK(has(refusal(npy("<f4", "(5,)", 19)), "promises 20 bytes of elements, the file has 19"));
  CHECK(has(refusal(npy("<f4", "(5,)", 21)), "promises 20 bytes of elements, the file has 21"));
  CHECK(has(refusal(npy("<f4", "()", 4)), "a single value"));
  CHECK(has(refusal(npy("<f4", "(0,)", 0)), "shape [0]"));
  CHECK(has(refusal(npy("<f4", "(4294967296, 4294967296)", 0)), "more than 2^64"));
  CHECK(has(refusal(npy("<f8", "(5,)", 40)), "elements are \"<f8\""));
  CHECK(has(refusal("x"), "malformed .npy header"));
  CHECK(has(refusal(""), "the file is empty"));
}
