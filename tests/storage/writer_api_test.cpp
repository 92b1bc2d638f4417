#include <cstring>

#include "tests/storage/c_writer.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace batchwright::test::c_abi;

TEST_CASE("storage: in C, what is added through the C ABI is what the room reads") {
  const TemporaryFolder folder;
  auto options = mixed_options();
  const bw_setting settings[] = {{"sample_rate_hz", "22050"}, {"source", "made up"}};
  options.settings = settings;
  options.setting_count = 2;
  bw_writer* writer = open_writer(folder / "d", options);
  for (std::uint32_t n = 0; n < 300; ++n) {
    std::uint64_t ordinal = 0;
    REQUIRE(add(writer, Sample(n), &ordinal) == BW_OK);
    CHECK(ordinal == n);
  }
  REQUIRE(bw_writer_close(writer) == BW_OK);
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 300);
  CHECK(holds_samples(**snapshot, 0));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  CHECK((*dataset)->schema().fields == mixed_schema().fields);
  CHECK((*dataset)->schema().settings == std::vector<std::pair<std::string, std::string>>{
                                             {"sample_rate_hz", "22050"}, {"source", "made up"}});
}

TEST_CASE("storage: in C, without fields a dataset is opened with its own, and is appended to") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  bw_writer* writer = nullptr;
  REQUIRE(bw_writer_open((folder / "d").c_str(), nullptr, &writer) == BW_OK);
  REQUIRE(bw_writer_field_count(writer) == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const bw_field& field = *bw_writer_field_at(writer, i);
    CHECK(field.name == std::string(kMixed[i]->name));
    CHECK(field.kind == kMixed[i]->kind);
    CHECK(field.dtype == kMixed[i]->dtype);
    CHECK(field.ndim == kMixed[i]->ndim);
    CHECK(field.shape[0] == kMixed[i]->shape[0]);
  }
  CHECK(bw_writer_field_at(writer, 3)->categories[1] == std::string("bob"));
  CHECK(bw_writer_field_at(writer, 4) == nullptr);
  CHECK(add(writer, Sample(10)) == BW_OK);
  std::uint64_t sequences = 0;
  CHECK(bw_writer_sequences(writer, &sequences) == BW_OK);
  CHECK(sequences == 11);
  CHECK(bw_writer_close(writer) == BW_OK);
  CHECK(sequences_of(folder / "d") == 11);
}

TEST_CASE("storage: in C, a dataset is created, appended to, or either, as asked for") {
  const TemporaryFolder folder;
  auto create = mixed_options();
  create.opening = BW_CREATE;
  auto append = mixed_options();
  append.opening = BW_APPEND;
  CHECK(refusal(folder / "d", append) == BW_NOT_FOUND);
  CHECK_FALSE(std::filesystem::exists(folder / "d"));
  CHECK(refusal(folder / "d", BW_WRITER_OPTIONS_INIT) == BW_NOT_FOUND);
  CHECK(bw_writer_close(open_writer(folder / "d", create)) == BW_OK);
  CHECK(refusal(folder / "d", create) == BW_ALREADY_EXISTS);
  CHECK(says((folder / "d").string()));
  CHECK(bw_writer_close(open_writer(folder / "d", append)) == BW_OK);
  CHECK(bw_writer_close(open_writer(folder / "d")) == BW_OK);
}

TEST_CASE("storage: in C, abort drops what was not committed, and only that") {
  const TemporaryFolder folder;
  bw_writer* writer = open_writer(folder / "d");
  REQUIRE(add(writer, Sample(0)) == BW_OK);
  REQUIRE(bw_writer_commit(writer) == BW_OK);
  REQUIRE(add(writer, Sample(1)) == BW_OK);
  REQUIRE(bw_writer_abort(writer) == BW_OK);
  CHECK(sequences_of(folder / "d") == 1);
  CHECK(bw_writer_abort(nullptr) == BW_OK);
  CHECK(bw_writer_close(nullptr) == BW_OK);
}

TEST_CASE(
    "storage: in C, values that do not fit are refused by key and field, and change nothing") {
  const TemporaryFolder folder;
  bw_writer* writer = open_writer(folder / "d");
  const float frames[6] = {};
  const std::int16_t targets[2] = {};
  const std::uint8_t speaker = 0;
  bw_value values[] = {{frames, 24, 2}, {targets, 4, 2}, {nullptr, 0, 0}, {&speaker, 1, 1}};
  bw_sequence sequence = {"k", 1, values, 4};
  const auto added = [&] { return bw_writer_add(writer, &sequence, nullptr); };
  values[0].bytes = 20;
  CHECK(added() == BW_SCHEMA_MISMATCH);
  CHECK(says("key \"k\": field \"features\" has 20 bytes, not 24"));
  values[0] = {frames, 0, 0};
  CHECK(added() == BW_SCHEMA_MISMATCH);
  CHECK(says("no frames"));
  values[0] = {frames, 24, 2};
  values[1].length = 1;
  CHECK(added() == BW_SCHEMA_MISMATCH);
  CHECK(says("\"targets\" has length 1, not 2"));
  values[1] = {nullptr, 4, 2};
  CHECK(added() == BW_INVALID_ARGUMENT);
  values[1] = {targets, 4, std::uint64_t{1} << 32 | 2};
  CHECK(added() == BW_SCHEMA_MISMATCH);
  values[1] = {targets, 4, 2};
  sequence.value_count = 3;
  CHECK(added() == BW_SCHEMA_MISMATCH);
  CHECK(says("found 3 values, the dataset has 4 fields"));
  sequence = {"", 0, values, 4};
  CHECK(added() == BW_SCHEMA_MISMATCH);
  sequence = {nullptr, 0, values, 4};
  CHECK(added() == BW_INVALID_ARGUMENT);
  CHECK(bw_writer_add(writer, nullptr, nullptr) == BW_INVALID_ARGUMENT);
  sequence = {"k", 1, values, 4};
  CHECK(added() == BW_OK);
  CHECK(added() == BW_ALREADY_EXISTS);
  CHECK(says("key \"k\" is already in dataset"));
  std::int32_t found = 0;
  CHECK(bw_writer_contains(writer, "k", 1, &found) == BW_OK);
  CHECK(found == 1);
  CHECK(bw_writer_contains(writer, "no", 2, &found) == BW_OK);
  CHECK(found == 0);
  CHECK(bw_writer_close(writer) == BW_OK);
}

TEST_CASE("storage: in C, versions and words") {
  CHECK(bw_writer_abi_version() == BW_WRITER_ABI_VERSION);
  CHECK(std::strlen(bw_writer_library_version()) > 0);
  CHECK(bw_writer_status_name(BW_OK) == std::string("ok"));
  CHECK(bw_writer_status_name(BW_ALREADY_EXISTS) == std::string("already_exists"));
  CHECK(bw_writer_status_name(-7) == std::string("unknown"));
  CHECK(bw_writer_status_name(999) == std::string("unknown"));
}
