#include "storage/ingest/files/npz.h"

#include <doctest/doctest.h>

#include "tests/storage/ingest/ingest_place.h"
#include "tests/support/process.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Written by NumPy 1.24: savez(), savez_compressed(), and three arrays in each:
/// features float64 [4, 3] in Fortran order, labels int64 [4], speaker int64 [].
std::string npz_data(const std::string& name) { return BATCHWRIGHT_TEST_DATA "/npz/" + name; }

bool all(std::string_view) { return true; }

std::span<const std::byte> text_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("storage: a .npz file gives its arrays, stored or deflated") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    const auto arrays = read_npz(npz_data(name), all);
    REQUIRE_MESSAGE(arrays, arrays.error().message);
    REQUIRE(arrays->size() == 3);
    CHECK((*arrays)[0].name == "features");
    const Array& features = (*arrays)[0].array;
    CHECK(features.element == Element::float64);
    CHECK(features.shape == std::vector<std::uint64_t>{4, 3});
    std::array<double, 12> values{};
    REQUIRE(features.bytes.size() == sizeof values);
    std::memcpy(values.data(), features.bytes.data(), sizeof values);
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == 0.5 * static_cast<double>(i));
    CHECK((*arrays)[2].array.shape.empty());
  }
}

TEST_CASE("storage: arrays of a .npz file that are not wanted are not read") {
  const auto arrays =
      read_npz(npz_data("stored.npz"), [](std::string_view name) { return name == "labels"; });
  REQUIRE(arrays);
  REQUIRE(arrays->size() == 1);
  CHECK((*arrays)[0].array.element == Element::int64);
}

TEST_CASE("storage: a .npz file that is cut, or damaged, is refused") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = read_file(npz_data(name));
    for (std::size_t size = 0; size + 1 < whole.size(); size += 3) {
      CAPTURE(size);
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<long>(size));
      CHECK_FALSE(parse_npz(std::as_bytes(std::span(cut)), all));
    }
    std::string damaged = whole;
    damaged[damaged.size() / 4] = static_cast<char>(damaged[damaged.size() / 4] ^ 8);
    CHECK_FALSE(parse_npz(text_bytes(damaged), all));
  }
  CHECK(contains(read_npz("/nowhere.npz", all).error().message, "/nowhere.npz: "));
}

TEST_CASE("storage: .npz files become sequences, their arrays fields") {
  const Place place;
  for (const char* name : {"a", "b"}) {
    write_file(place.in(std::string(name) + ".npz"), read_file(npz_data("stored.npz")));
  }
  const auto list = find_files(place.folder / "in", npz_extensions());
  REQUIRE(list);
  NpzSourceOptions options;
  options.arrays.casts = {{"", DType::float32}, {"", DType::int32}};
  SUBCASE("all arrays") {
    const auto source = npz_source(options, list->files);
    REQUIRE_MESSAGE(source, source.error().message);
    const auto report = place.take({}, **source, list->files);
    REQUIRE_MESSAGE(report, report.error().message);
    REQUIRE_FALSE(report->failure);
    const auto snapshot = place.snapshot();
    const auto& fields = snapshot->schema().fields;
    REQUIRE(fields.size() == 3);
    CHECK(fields[0] == FieldSpec{"features", FieldKind::primary, DType::float32, {3}, {}});
    CHECK(fields[1] == FieldSpec{"labels", FieldKind::aligned, DType::int32, {}, {}});
    CHECK(fields[2] == FieldSpec{"speaker", FieldKind::scalar, DType::int32, {}, {}});
    CHECK(place.keys() == Keys{"a", "b"});
  }
  SUBCASE("some of them, with another primary one") {
    options.fields = {"speaker", "labels"};
    options.primary = "labels";
    const auto source = npz_source(options, list->files);
    REQUIRE_MESSAGE(source, source.error().message);
    CHECK((*source)->fields()[0].name == "labels");
    CHECK((*source)->fields().size() == 2);
  }
  SUBCASE("one that is not there") {
    options.fields = {"labels", "pitch"};
    options.primary = "labels";
    const auto source = npz_source(options, list->files);
    REQUIRE_FALSE(source);
    CHECK(contains(source.error().message, "no array \"pitch\"; found: "));
  }
  SUBCASE("no primary field") {
    options.fields = {"labels", "speaker"};
    const auto source = npz_source(options, list->files);
    REQUIRE_FALSE(source);
    CHECK(contains(source.error().message, "no array \"features\" for the primary field; found: "));
  }
}
