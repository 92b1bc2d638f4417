#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Error open_error(const std::filesystem::path& path) {
  const auto dataset = Catalog().open({path});
  return dataset ? Error{ErrorCode::internal, "it opened"} : dataset.error();
}

/// The bytes of a number as they lie in a file.
template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// Puts `value` at `distance` from every place where `pattern` is in the data file.
void patch(const std::filesystem::path& dataset, const std::string& pattern, long distance,
           const std::string& value) {
  std::string bytes = read_bytes(dataset / "data.mdb");
  std::size_t places = 0;
  for (auto at = bytes.find(pattern); at != std::string::npos; at = bytes.find(pattern, at + 1)) {
    bytes.replace(at + static_cast<std::size_t>(distance), value.size(), value);
    ++places;
  }
  REQUIRE(places > 0);
  write_bytes(dataset / "data.mdb", bytes);
}

/// Bytes that are only in sample n's features.
std::string features_of(std::uint32_t n) {
  return bytes_of(static_cast<float>(n)) + bytes_of(static_cast<float>(n));
}

}  // namespace

TEST_CASE("storage: what is no dataset is refused with what it is") {
  const TemporaryFolder folder;
  CHECK(contains(open_error(folder / "nothing").message, "nothing does not exist"));
  write_bytes(folder / "file", "text");
  CHECK(contains(open_error(folder / "file").message, "is not a directory"));
  std::filesystem::create_directory(folder / "d");
  CHECK(contains(open_error(folder / "d").message, "holds no data.mdb"));
  write_bytes(folder / "d" / "data.mdb", "");
  CHECK(contains(open_error(folder / "d").message, "data.mdb is empty"));
  write_bytes(folder / "d" / "data.mdb", std::string(20000, 'x'));
  const Error error = open_error(folder / "d");
  CHECK(error.code == ErrorCode::store_unavailable);
  CHECK(contains(error.message, "data.mdb is not an LMDB file"));
}

TEST_CASE("storage: a dataset of a machine with other words is refused with the reason") {
  constexpr bool is_64 = sizeof(std::size_t) == 8;
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  // LMDB's first page as the others lay it out: number, flags, room, magic number, version.
  std::string page(4096, '\0');
  page[is_64 ? 6 : 10] = 8;
  constexpr std::uint32_t kMagicAndVersion[] = {0xBEEFC0DE, 1};
  std::memcpy(page.data() + (is_64 ? 12 : 16), kMagicAndVersion, sizeof kMagicAndVersion);
  write_bytes(folder / "d" / "data.mdb", page + page);
  const Error error = open_error(folder / "d");
  CHECK(error.code == ErrorCode::store_unavailable);
  CHECK(contains(error.message, is_64 ? "pages of a 32-bit machine" : "pages of a 64-bit machine"));
}

TEST_CASE("storage: an LMDB environment that holds something else is no dataset") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  patch(folder / "d", "sequences", 0, "sentences");
  const Error error = open_error(folder / "d");
  CHECK(error.code == ErrorCode::store_unavailable);
  CHECK(contains(error.message, "is an LMDB environment, but not a Batchwright dataset"));
  CHECK_FALSE(make_samples(folder / "d", 10, 20));
}

TEST_CASE("storage: a dataset of a newer format is refused with both versions") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  const std::uint64_t content = (*snapshot_of({folder / "d"}))->content();
  // The version lies 28 bytes before the content in the state.
  patch(folder / "d", bytes_of(content), -28, bytes_of(std::uint32_t{7}));
  const Error error = open_error(folder / "d");
  CHECK(error.code == ErrorCode::unsupported_version);
  CHECK(contains(error.message, "format version 7 is newer than version 1"));
  CHECK(make_samples(folder / "d", 10, 20).error().code == ErrorCode::unsupported_version);
}

TEST_CASE("storage: a damaged state is found by its CRC") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  const std::uint64_t content = (*snapshot_of({folder / "d"}))->content();
  patch(folder / "d", bytes_of(content), 0, bytes_of(content + 1));
  CHECK(open_error(folder / "d").code == ErrorCode::corrupt_record);
}

TEST_CASE("storage: a truncated data file is refused with both sizes") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3000));
  const auto file = folder / "d" / "data.mdb";
  const auto whole = std::filesystem::file_size(file);
  for (const auto size : {whole - 1, whole - 4096, whole / 2, std::uintmax_t{8192}}) {
    std::filesystem::resize_file(file, size);
    const Error error = open_error(folder / "d");
    CHECK(error.code == ErrorCode::store_unavailable);
    CHECK(contains(error.message, "truncated: it has " + std::to_string(size) +
                                      " bytes, of at least " + std::to_string(whole)));
    CHECK(make_samples(folder / "d", 3000, 3001).error().code == ErrorCode::store_unavailable);
  }
  std::filesystem::resize_file(file, 100);
  CHECK(open_error(folder / "d").code == ErrorCode::store_unavailable);
}

TEST_CASE("storage: flipped bits in a record are found when it is read, and it alone is lost") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3000));
  patch(folder / "d", features_of(1234), 5, "\x01");
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  const auto broken = (*snapshot)->record(Ordinal{1234});
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == ErrorCode::corrupt_record);
  CHECK(contains(broken.error().message, (folder / "d").string() + ", sequence 1234: key \"" +
                                             Sample(1234).key() + "\": CRC-32C is"));
  CHECK((*snapshot)->record(Ordinal{1233}));
  CHECK((*snapshot)->record(Ordinal{1235}));
}

TEST_CASE("storage: verify lists every broken record and nothing else") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 100));
  REQUIRE(make_samples(folder / "b", 100, 3000));
  patch(folder / "b", features_of(1234), 5, "\x01");
  patch(folder / "b", features_of(2499), 3, "\x7F");
  std::uint64_t checked = 0;
  const auto report = verify_dataset({folder / "a", folder / "b"},
                                     [&](std::uint64_t done, std::uint64_t) { checked = done; });
  REQUIRE(report);
  CHECK_FALSE(report->sound());
  CHECK(report->sequences == 3000);
  CHECK(checked == 3000);
  CHECK(report->problems.empty());
  REQUIRE(report->broken.size() == 2);
  CHECK(report->broken[0].shard == folder / "b");
  CHECK(report->broken[0].ordinal.value == 1134);
  CHECK(report->broken[0].key == Sample(1234).key());
  CHECK(report->broken[0].reason == "its CRC-32C is wrong");
  CHECK(report->broken[1].ordinal.value == 2399);
}

TEST_CASE("storage: verify finds a number that no category has, in a record that is whole") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 100));
  const Sample sample(41);
  std::vector<std::byte> record(record_bytes(sample.sequence()));
  write_record(sample.sequence(), Ordinal{41}, sample.length(), record);
  const auto text = [&record] {
    set_record_crc(record, crc32c(record_crc_range(record)));
    return std::string(reinterpret_cast<const char*>(record.data()), record.size());
  };
  const std::string good = text();
  const auto view = RecordView::parse(mixed_schema(), record);
  REQUIRE(view);
  record[static_cast<std::size_t>(view->field(3).bytes.data() - record.data())] = std::byte{7};
  patch(folder / "d", good, 0, text());
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  REQUIRE(report->broken.size() == 1);
  CHECK(report->broken[0].ordinal.value == 41);
  CHECK(report->broken[0].reason ==
        "field \"speaker\" has the value 7; allowed: 0 to 1, the numbers of its categories");
}

TEST_CASE("storage: verify finds a sound dataset sound") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "a", 0, 5000));
  REQUIRE(make_samples(folder / "empty", 0, 0));
  const auto report = verify_dataset({folder / "a", folder / "empty"});
  REQUIRE(report);
  CHECK(report->sound());
  CHECK(report->sequences == 5000);
  CHECK(report->bytes > 5000 * 200);
}

TEST_CASE("storage: a damaged length index keeps a snapshot away, and verify names the chunk") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 5000));
  // Lengths 11, 12, 13 follow one another only in the first column's chunks.
  patch(folder / "d",
        bytes_of(std::uint32_t{11}) + bytes_of(std::uint32_t{12}) + bytes_of(std::uint32_t{13}), 4,
        bytes_of(std::uint32_t{99}));
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE_FALSE(snapshot);
  CHECK(snapshot.error().code == ErrorCode::corrupt_record);
  CHECK(contains(snapshot.error().message, "chunk 0 of column 0 is damaged"));
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  CHECK(report->broken.empty());
  REQUIRE(report->problems.size() == 1);
  CHECK(contains(report->problems[0], "chunk 0 of column 0"));
}

TEST_CASE("storage: verify finds a key that does not lead to its record") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 10));
  // A key with its ordinal after it is only in the table of keys.
  patch(folder / "d", Sample(3).key() + bytes_of(std::uint64_t{3}),
        static_cast<long>(Sample(3).key().size()), bytes_of(std::uint64_t{4}));
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  REQUIRE(report->broken.size() == 1);
  CHECK(report->broken[0].ordinal.value == 3);
  CHECK(report->broken[0].reason == "its key does not lead to it");
}

TEST_CASE("storage: once reads a record's CRC the first time only, always each time") {
  const TemporaryFolder folder;
  for (const auto verify : {VerifyRecords::once, VerifyRecords::always, VerifyRecords::never}) {
    const auto path = folder / std::to_string(static_cast<int>(verify));
    REQUIRE(make_samples(path, 0, 100));
    const auto dataset = Catalog().open({path}, verify);
    REQUIRE(dataset);
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE(snapshot);
    REQUIRE((*snapshot)->record(Ordinal{42}));
    // In place, so that the map sees it.
    std::string bytes = read_bytes(path / "data.mdb");
    const auto at = bytes.find(features_of(42));
    REQUIRE(at != std::string::npos);
    std::fstream(path / "data.mdb").seekp(static_cast<long>(at)).put('\x55');
    CHECK((*snapshot)->record(Ordinal{42}).has_value() == (verify != VerifyRecords::always));
  }
}

TEST_CASE("storage: a data file cut under a snapshot is an error, not a signal") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3000));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  const auto record = (*snapshot)->record(Ordinal{2999});
  REQUIRE(record);
  const auto payload = record->field(0).bytes;
  for (const std::uintmax_t size : {8192U, 0U}) {
    std::filesystem::resize_file(folder / "d" / "data.mdb", size);
    std::vector<std::byte> copy(payload.size());
    CHECK(copy_from_map(copy, payload).error().code == ErrorCode::store_unavailable);
    for (const std::uint64_t ordinal : {0U, 1500U, 2999U}) {
      const auto read = (*snapshot)->record(Ordinal{ordinal});
      REQUIRE_FALSE(read);
      CHECK(read.error().code == ErrorCode::store_unavailable);
      CHECK(contains(read.error().message, "truncated: it has " + std::to_string(size)));
      static_cast<void>((*snapshot)->place(Ordinal{ordinal}));
    }
    CHECK((*dataset)->snapshot().error().code == ErrorCode::store_unavailable);
  }
}

TEST_CASE("storage: a dataset that was removed or replaced is noticed by the next snapshot") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 30));
  REQUIRE(make_samples(folder / "other", 0, 40));
  const auto dataset = Catalog().open({folder / "d"});
  REQUIRE(dataset);
  std::filesystem::rename(folder / "other" / "data.mdb", folder / "d" / "data.mdb");
  CHECK(contains((*dataset)->snapshot().error().message, "removed or replaced"));
  std::filesystem::remove_all(folder / "d");
  CHECK((*dataset)->snapshot().error().code == ErrorCode::store_unavailable);
}

TEST_CASE("storage: no flipped byte of a data file crashes its readers") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 60));
  const std::string whole = read_bytes(folder / "d" / "data.mdb");
  std::size_t lost = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    std::string damaged = whole;
    damaged[i * 104729 % whole.size()] ^= static_cast<char>(1 << (i % 8));
    write_bytes(folder / "d" / "data.mdb", damaged);
    const auto report = verify_dataset({folder / "d"});
    if (!report || !report->sound()) ++lost;
    if (const auto snapshot = snapshot_of({folder / "d"})) {
      for (std::uint64_t n = 0; n < (*snapshot)->sequences(); ++n) {
        static_cast<void>((*snapshot)->record(Ordinal{n}));
      }
    }
  }
  CHECK(lost > 10);
}
