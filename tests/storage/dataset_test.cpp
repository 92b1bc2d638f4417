#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("storage: crc32c gives the value that its standard names") {
  const std::string_view check = "123456789";
  const auto bytes = std::as_bytes(std::span(check));
  CHECK(crc32c(bytes) == 0xE3069283);
  CHECK(crc32c(bytes.subspan(4), crc32c(bytes.first(4))) == 0xE3069283);
  CHECK(crc32c({}) == 0);
}

TEST_CASE("storage: a dataset gives back what was written") {
  const TemporaryFolder folder;
  for (const std::uint32_t count : {1U, 2U, 4083U, 4084U, 4085U, 9000U}) {
    const auto path = folder / std::to_string(count);
    REQUIRE(make_samples(path, 0, count));
    const auto snapshot = snapshot_of({path});
    REQUIRE(snapshot);
    CHECK((*snapshot)->sequences() == count);
    CHECK((*snapshot)->schema() == mixed_schema());
    CHECK(holds_samples(**snapshot, 0));
    CHECK((*snapshot)->field_lengths(0).empty());
    CHECK((*snapshot)->record(Ordinal{count}).error().code == ErrorCode::not_found);
  }
}

TEST_CASE("storage: a dataset without sequences opens and is empty") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "empty", 0, 0));
  const auto snapshot = snapshot_of({folder / "empty"});
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 0);
  CHECK((*snapshot)->lengths().empty());
  CHECK((*snapshot)->generation() == 0);
  CHECK((*snapshot)->record(Ordinal{0}).error().code == ErrorCode::not_found);
}

TEST_CASE("storage: payloads of large records are 64-byte aligned in the map") {
  const TemporaryFolder folder;
  const Schema schema{{{"features", FieldKind::primary, DType::float32, {80}, {}}}, {}};
  {
    auto writer = DatasetWriter::open(folder / "d", schema);
    REQUIRE(writer);
    const std::vector<float> features(100 * 80, 1.5F);
    const std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), 100}};
    for (const char* key : {"a", "b", "c"}) REQUIRE(writer->append({key, values}));
    REQUIRE(writer->commit());
  }
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto record = (*snapshot)->record(Ordinal{i});
    REQUIRE(record);
    // LMDB's pages begin with 16 bytes, or with 12 where words have 32 bits.
    constexpr std::size_t place = sizeof(std::size_t) == 8 ? 0 : 60;
    CHECK(reinterpret_cast<std::uintptr_t>(record->field(0).bytes.data()) % 64 == place);
  }
}

TEST_CASE("storage: shards are one dataset, their sequences counted on") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 10));
  REQUIRE(make_samples(folder / "b", 10, 5000));
  const auto snapshot = snapshot_of({folder / "a", folder / "b"});
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 5000);
  const auto counts = (*snapshot)->shard_sequences();
  CHECK(std::vector(counts.begin(), counts.end()) == std::vector<std::uint64_t>{10, 4990});
  CHECK((*snapshot)->generation() == 2);
  CHECK(holds_samples(**snapshot, 0));
}

TEST_CASE("storage: a key leads to its sequence, in the first shard that has it") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 10));
  REQUIRE(make_samples(folder / "b", 5, 5000));
  const auto snapshot = snapshot_of({folder / "a", folder / "b"});
  REQUIRE(snapshot);
  const auto place_of = [&snapshot](const std::string& key) {
    const auto found = (*snapshot)->find(key);
    REQUIRE(found);
    return *found ? std::optional((*found)->value) : std::nullopt;
  };
  for (const std::uint32_t n : {0U, 5U, 9U, 10U, 4999U}) {
    CHECK(place_of(Sample(n).key()) == (n < 10 ? n : n + 5));
  }
  for (const std::string& key :
       {std::string(), Sample(5000).key(), std::string("key"), std::string(600, 'x')}) {
    CHECK_FALSE(place_of(key));
  }
}

TEST_CASE("storage: the order of shards changes the content fingerprint") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 10));
  REQUIRE(make_samples(folder / "b", 10, 20));
  const auto ab = snapshot_of({folder / "a", folder / "b"});
  const auto ba = snapshot_of({folder / "b", folder / "a"});
  const auto a = snapshot_of({folder / "a"});
  REQUIRE(ab);
  REQUIRE(ba);
  REQUIRE(a);
  CHECK((*ab)->content() != (*ba)->content());
  CHECK((*ab)->content() != (*a)->content());
}

TEST_CASE("storage: shards whose fields differ are refused with the first such field named") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 3));
  Schema other = mixed_schema();
  other.fields[2].dtype = DType::int64;
  REQUIRE(DatasetWriter::open(folder / "b", other));
  const auto dataset = Catalog().open({folder / "a", folder / "b"});
  REQUIRE_FALSE(dataset);
  CHECK(dataset.error().code == ErrorCode::schema_mismatch);
  CHECK(dataset.error().message.find(
            "field 2 is \"tokens\" (independent, int64 [], 0 categories), not \"tokens\" "
            "(independent, int32 [], 0 categories)") != std::string::npos);
}

TEST_CASE("storage: no shard, or the same one by another path, is refused") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 3));
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  CHECK(Catalog().open({}).error().code == ErrorCode::invalid_argument);
  const auto twice = Catalog().open({folder / "a", folder / "link"});
  REQUIRE_FALSE(twice);
  CHECK(twice.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("storage: two feeds on one dataset share it, and an unchanged one its snapshot") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 3));
  Catalog catalog;
  const auto first = catalog.open({folder / "a"});
  const auto second = catalog.open({folder / "a"});
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first == *second);
  const auto snapshot = (*first)->snapshot();
  REQUIRE(snapshot);
  CHECK(*snapshot == *(*second)->snapshot());
}

TEST_CASE("storage: a dataset that took another's place is opened, also while that is open") {
  const TemporaryFolder folder;
  const auto path = folder / "data";
  REQUIRE(make_samples(path, 0, 5));
  REQUIRE(make_samples(folder / "fresh", 0, 7));
  Catalog catalog;
  const auto old = catalog.open({path});
  REQUIRE(old);
  std::filesystem::rename(path, folder / "away");
  std::filesystem::rename(folder / "fresh", path);
  const auto fresh = catalog.open({path});
  REQUIRE(fresh);
  const auto snapshot = (*fresh)->snapshot();
  REQUIRE(snapshot);
  CHECK((*snapshot)->sequences() == 7);
}

TEST_CASE("storage: any number of threads reads a snapshot at once") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 300));
  REQUIRE(make_samples(folder / "b", 300, 600));
  const auto snapshot = snapshot_of({folder / "a", folder / "b"});
  REQUIRE(snapshot);
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 600; ++i) static_cast<void>((*snapshot)->place(Ordinal{i}));
      if (holds_samples(**snapshot, 0)) ++right;
    });
  }
  threads.clear();
  CHECK(right == 4);
}
