#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>

#include "tests/storage/ingest/ingest_place.h"

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

TEST_CASE("storage: a new dataset is committed to early, one that is there is not") {
  const Place place;
  const auto write = [&place](char folder) {
    for (char name = '0'; name <= '9'; ++name) {
      write_file(place.in(std::string(1, folder) + "/" + name + ".npy"),
                 npy("<f4", "(4096, 64)", std::size_t{1} << 20));
    }
  };
  std::vector<std::uint64_t> added;  // in the dataset, each time that a file was taken
  How how;
  how.resume = true;
  how.watch = [&added](const IngestFigures& figures) {
    added.push_back(figures.added);
    return true;
  };
  write('a');
  REQUIRE(place.take(how, false));
  REQUIRE(added.size() == 10);
  CHECK(added[2] == 0);
  CHECK(added[3] == 4);  // records of a little above 4 MiB
  added.clear();
  write('b');
  REQUIRE(place.take(how, false));
  CHECK(added == std::vector<std::uint64_t>(10, 0));
  CHECK(place.snapshot()->sequences() == 20);
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
  CHECK(has(refusal(npy("<f8", "(5,)", 40)), "elements are float64; allowed: float32, "));
  CHECK(has(refusal(npy("<f8", "(5,)", 40)), "or --cast float32"));
  CHECK(has(refusal("x"), "malformed .npy header"));
  CHECK(has(refusal(""), "the file is empty"));
}

TEST_CASE("storage: arrays are cast when that is asked for, and only then") {
  const Place place;
  const std::vector<double> values = {1.5, -2.25, 1e-3, 65504};
  std::string file = npy("<f8", "(4,)", 0);
  file.append(reinterpret_cast<const char*>(values.data()), 32);
  write_file(place.in("1.npy"), file);
  How how;
  CHECK(place.take(how, false).error().message.find("elements are float64") != std::string::npos);
  SUBCASE("float32") {
    how.arrays.casts = {{"", DType::float32}};
    REQUIRE_FALSE(place.take(how, false)->failure);
    const auto snapshot = place.snapshot();
    CHECK(snapshot->schema().fields[0].dtype == DType::float32);
    std::array<float, 4> got{};
    std::memcpy(got.data(), snapshot->record(Ordinal{0})->field(0).bytes.data(), sizeof got);
    CHECK(got == std::array<float, 4>{1.5F, -2.25F, 1e-3F, 65504.F});
  }
  SUBCASE("float16") {
    how.arrays.casts = {{"features", DType::float16}};
    REQUIRE_FALSE(place.take(how, false)->failure);
    std::array<std::uint16_t, 4> got{};
    std::memcpy(got.data(), place.snapshot()->record(Ordinal{0})->field(0).bytes.data(),
                sizeof got);
    // As numpy.float16 has them.
    CHECK(got == std::array<std::uint16_t, 4>{0x3E00, 0xC080, 0x1419, 0x7BFF});
  }
  SUBCASE("another field") {
    how.arrays.casts = {{"labels", DType::float32}};
    CHECK(place.take(how, false).error().message ==
          "--cast labels: there is no such field; found: features");
  }
}

TEST_CASE("storage: a cast names the element that does not fit") {
  const Place place;
  const std::vector<std::int64_t> values = {1, 2, std::int64_t{1} << 31, 4};
  std::string file = npy("<i8", "(2, 2)", 0);
  file.append(reinterpret_cast<const char*>(values.data()), 32);
  write_file(place.in("1.npy"), npy("<i8", "(1, 2)", 0) + std::string(16, '\0'));
  write_file(place.in("2.npy"), file);
  How how;
  how.arrays.casts = {{"", DType::int32}};
  const auto report = place.take(how, false);
  REQUIRE(report->failure);
  CHECK(report->failure->message ==
        place.in("2.npy").string() + ": element [1, 0] is 2147483648, which int32 does not hold");
}

TEST_CASE("storage: numbers that are not finite are refused with their place") {
  const Place place;
  const std::vector<float> values = {1, 2, 3, std::numeric_limits<float>::infinity()};
  std::string file = npy("<f4", "(2, 2)", 0);
  file.append(reinterpret_cast<const char*>(values.data()), 16);
  write_file(place.in("1.npy"), npy("<f4", "(2, 2)", 0) + std::string(16, '\0'));
  write_file(place.in("2.npy"), file);
  How how;
  const auto report = place.take(how, false);
  REQUIRE(report->failure);
  CHECK(report->failure->message.find(place.in("2.npy").string() +
                                      ": element [1, 1] is inf; allowed: finite numbers") == 0);
  how.arrays.allow_nonfinite = true;
  how.resume = true;
  CHECK_FALSE(place.take(how, false)->failure);
}

TEST_CASE("storage: of many arrays that no dataset holds the first hundred tell") {
  const Place place;
  for (int i = 0; i < 150; ++i) {
    write_file(place.in(std::to_string(1000 + i) + ".npy"), npy("<u2", "(3,)", 6));
  }
  // A usable one after so many of one kind is not looked for; after fewer it is.
  write_file(place.in("9.npy"), npy("<i2", "(3,)", 6));
  const auto refused = place.take({}, false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("none of the files is a usable array; the first: ") == 0);
  CHECK(refused.error().message.find("1000.npy: elements are uint16") != std::string::npos);
  const Place other;
  for (int i = 0; i < 50; ++i) {
    write_file(other.in(std::to_string(1000 + i) + ".npy"), npy("<u2", "(3,)", 6));
  }
  write_file(other.in("9.npy"), npy("<i2", "(3,)", 6));
  How how;
  how.on_error = OnError::skip;
  CHECK(other.take(how, false));
  CHECK(other.keys() == Keys{"9"});
}
