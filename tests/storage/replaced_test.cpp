// Datasets whose files become others while they are read.

#include <doctest/doctest.h>

#include <cstring>

#include "storage/dataset/checksums.h"
#include "tests/storage/child.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint32_t kStored = 300;

Schema one_field() { return {{{"value", FieldKind::primary, DType::int32, {40}, {}}}, {}}; }

/// Sequences [from, to) of one frame whose values are all `value`.
void append(const std::filesystem::path& path, std::uint32_t from, std::uint32_t to,
            std::int32_t value) {
  auto writer = DatasetWriter::open(path, one_field());
  REQUIRE(writer);
  const std::vector<std::int32_t> values(40, value);
  const std::vector<FieldValue> fields = {{std::as_bytes(std::span(values)), 1}};
  for (std::uint32_t n = from; n < to; ++n) {
    REQUIRE(writer->append({"sequence " + std::to_string(n), fields}));
  }
  REQUIRE(writer->commit());
}

/// By another process: this one has the folder open to read.
void append_elsewhere(const std::filesystem::path& path, std::uint32_t from, std::uint32_t to,
                      std::int32_t value) {
  const pid_t writer = fork_child([&] {
    append(path, from, to, value);
    _exit(0);
  });
  REQUIRE(wait_for(writer) == 0);
}

/// As cp does where the file is as long: each byte is written, and none cut off before.
void overwrite(const std::filesystem::path& data, const std::string& bytes, std::size_t from = 0,
               std::size_t to = std::string::npos) {
  std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<long>(from));
  const std::string part = bytes.substr(from, to - from);
  file.write(part.data(), static_cast<long>(part.size()));
  REQUIRE(file.flush());
}

/// Makes the dataset one that an earlier version wrote: there is nothing in the place of the
/// column.
void leave_out_checksums(const std::filesystem::path& dataset) {
  const auto key = [](std::uint64_t column) {
    const std::uint64_t number = column << 40;
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  std::string bytes = read_bytes(dataset / "data.mdb");
  std::size_t places = 0;
  for (auto at = bytes.find(key(4095)); at != std::string::npos; at = bytes.find(key(4095), at)) {
    bytes.replace(at, 8, key(4094));
    ++places;
  }
  REQUIRE(places > 0);
  write_bytes(dataset / "data.mdb", bytes);
}

/// Leaves `count` values in a chunk of the column, as where an earlier version appended the others.
void shorten_checksums(const std::filesystem::path& dataset, std::uint64_t chunk,
                       std::uint32_t count) {
  const std::uint64_t key = std::uint64_t{4095} << 40 | chunk;
  auto transaction = Transaction::begin(*Environment::open_to_write(dataset), Access::write);
  REQUIRE(transaction);
  const auto found = *transaction->get(Table::lengths, as_key(key));
  REQUIRE(found);
  std::vector<std::byte> bytes(found->begin(), found->begin() + 8 + 4 * count);
  std::memcpy(bytes.data() + 4, &count, sizeof count);
  const std::uint32_t crc = crc32c(std::span<const std::byte>(bytes).subspan(4));
  std::memcpy(bytes.data(), &crc, sizeof crc);
  REQUIRE(transaction->put(Table::lengths, as_key(key), bytes, Put::replace));
  REQUIRE(transaction->commit());
}

/// How many of the first sequences have a checksum in the index, without a gap; each is right.
std::uint64_t known_checksums(const std::filesystem::path& dataset) {
  const auto snapshot = snapshot_of({dataset});
  const auto transaction = Transaction::begin(*Environment::open(dataset), Access::read);
  const std::uint64_t sequences = (*snapshot)->sequences();
  const auto checksums = RecordChecksums::read(*transaction, sequences, sequences);
  REQUIRE(checksums);
  std::uint64_t known = 0;
  while (known < sequences && checksums->of(known)) {
    const auto place = (*snapshot)->place(Ordinal{known});
    REQUIRE(record_crc(place->bytes) == *checksums->of(known));
    ++known;
  }
  return known;
}

struct Opened {
  Catalog catalog;
  std::shared_ptr<Dataset> dataset;
  std::shared_ptr<const Snapshot> snapshot;

  explicit Opened(const std::vector<std::filesystem::path>& shards,
                  VerifyRecords verify = VerifyRecords::once, Locking locking = Locking::on) {
    const auto opened = catalog.open(shards, verify, locking, Holding::checksums);
    REQUIRE(opened);
    dataset = *opened;
    snapshot = *dataset->snapshot();
  }
};

std::int32_t value_of(const RecordView& record) {
  std::int32_t value = 0;
  std::memcpy(&value, record.field(0).bytes.data(), sizeof value);
  return value;
}

/// How many records are read, all of which have this value; the rest is refused as other content.
std::size_t read_of_value(const Snapshot& snapshot, std::int32_t value) {
  std::size_t read = 0;
  for (std::uint64_t n = 0; n < snapshot.sequences(); ++n) {
    const auto record = snapshot.record(Ordinal{n});
    if (record) {
      REQUIRE(value_of(*record) == value);
      ++read;
    } else {
      REQUIRE(record.error().code == ErrorCode::fingerprint_mismatch);
      REQUIRE(contains(record.error().message, "data.mdb was overwritten in place"));
    }
  }
  return read;
}

}  // namespace

TEST_CASE("storage: of a file that is overwritten no record of other content is read") {
  const TemporaryFolder folder;
  append(folder / "new", 0, kStored, 2);
  const std::string bytes = read_bytes(folder / "new" / "data.mdb");
  int number = 0;
  for (const auto verify : {VerifyRecords::once, VerifyRecords::always, VerifyRecords::never}) {
    for (const bool looked_before : {false, true}) {
      const auto path = folder / std::to_string(number++);
      append(path, 0, kStored, 1);
      const Opened opened({path}, verify);
      if (looked_before) REQUIRE(read_of_value(*opened.snapshot, 1) == kStored);
      REQUIRE(std::filesystem::file_size(path / "data.mdb") == bytes.size());
      // A part of it at a time, as the copy goes on; what was not reached yet may be read.
      std::size_t read = kStored;
      for (std::size_t from = 0; from < bytes.size(); from += 32768) {
        overwrite(path / "data.mdb", bytes, from, from + 32768);
        const std::size_t now = read_of_value(*opened.snapshot, 1);
        CHECK(now <= read);
        read = now;
      }
      CHECK(read == 0);
      CHECK(opened.snapshot->check_unchanged().error().code == ErrorCode::fingerprint_mismatch);
      CHECK(opened.snapshot->standing().standing == DataStanding::overwritten);
      CHECK(contains(opened.snapshot->standing().why, path.string()));
    }
  }
}

TEST_CASE("storage: without checksums in the index, the state tells that a file was overwritten") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  append(folder / "new", 0, kStored, 2);
  leave_out_checksums(folder / "d");
  CHECK(known_checksums(folder / "d") == 0);
  CHECK(verify_dataset({folder / "d"})->sound());
  const Opened opened({folder / "d"});
  CHECK(opened.snapshot->check_unchanged());
  CHECK(read_of_value(*opened.snapshot, 1) == kStored);
  overwrite(folder / "d" / "data.mdb", read_bytes(folder / "new" / "data.mdb"));
  const auto changed = opened.snapshot->check_unchanged();
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ErrorCode::fingerprint_mismatch);
  CHECK(opened.snapshot->standing().standing == DataStanding::overwritten);
}

TEST_CASE("storage: a flipped bit in a record's checksum is damage, and no other content") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  const Opened opened({folder / "d"}, VerifyRecords::never);
  const auto place = opened.snapshot->place(Ordinal{7});
  std::string bytes = read_bytes(folder / "d" / "data.mdb");
  const std::string record(reinterpret_cast<const char*>(place->bytes.data()), 48);
  const std::size_t at = bytes.find(record) + 4;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  overwrite(folder / "d" / "data.mdb", bytes, at, at + 1);
  const auto broken = opened.snapshot->record(Ordinal{7});
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code == ErrorCode::corrupt_record);
  CHECK(contains(broken.error().message, "sequence 7: its CRC-32C is not the one in the index"));
  CHECK(opened.snapshot->record(Ordinal{8}));
  CHECK(opened.snapshot->check_unchanged());
}

TEST_CASE("storage: an overwritten dataset is opened again once nothing reads it any longer") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  append(folder / "new", 0, 100, 2);
  append(folder / "new", 100, kStored, 2);
  {
    const Opened opened({folder / "d"});
    overwrite(folder / "d" / "data.mdb", read_bytes(folder / "new" / "data.mdb"));
    CHECK_FALSE(opened.snapshot->check_unchanged());
    const auto again = snapshot_of({folder / "d"});
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::store_unavailable);
    CHECK(contains(again.error().message, "is opened anew once nothing reads it any longer"));
    CHECK_FALSE(opened.dataset->snapshot());
  }
  const Opened opened({folder / "d"});
  CHECK(read_of_value(*opened.snapshot, 2) == kStored);
}

TEST_CASE("storage: what takes a dataset's place in its file is no growth, however it looks") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  for (std::uint32_t n = 0; n < 5; ++n) append(folder / "other", n * 100, n * 100 + 100, 2);
  Opened opened({folder / "d"});
  opened.snapshot.reset();  // the dataset alone is held
  overwrite(folder / "d" / "data.mdb", read_bytes(folder / "other" / "data.mdb"));
  const auto grown = opened.dataset->snapshot();
  REQUIRE_FALSE(grown);
  CHECK(grown.error().code == ErrorCode::fingerprint_mismatch);
}

TEST_CASE("storage: without a lock a dataset that grew over a snapshot was not overwritten") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  SUBCASE("with checksums in the index") {}
  SUBCASE("without") { leave_out_checksums(folder / "d"); }
  const Opened opened({folder / "d"}, VerifyRecords::once, Locking::off);
  const auto& snapshot = *opened.snapshot;
  std::uint32_t stored = kStored;
  for (int commit = 0; commit < 12; ++commit, stored += 10) {
    append_elsewhere(folder / "d", stored, stored + 10, 1);
    CHECK(snapshot.standing().standing == DataStanding::current);
  }
  CHECK(snapshot.record(Ordinal{0}).error().code == ErrorCode::store_unavailable);
  CHECK(snapshot.check_unchanged().error().code == ErrorCode::store_unavailable);
  // It can be read on.
  const auto next = opened.dataset->snapshot();
  REQUIRE(next);
  CHECK(read_of_value(**next, 1) == stored);
  // As many commits, and others.
  for (std::uint32_t n = 0; n < stored; n += 30) append(folder / "new", n, n + 30, 2);
  overwrite(folder / "d" / "data.mdb", read_bytes(folder / "new" / "data.mdb"));
  CHECK(snapshot.standing().standing == DataStanding::overwritten);
}

TEST_CASE("storage: a snapshot tells whether its path still leads to its files") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  append(folder / "beside", 0, kStored, 1);
  append(folder / "new", 0, kStored, 2);
  std::filesystem::create_directory_symlink(folder / "d", folder / "link");
  const Opened other({folder / "d"});  // whose path is not the link's
  const Opened opened({folder / "beside", folder / "link"});
  CHECK(opened.snapshot->standing().standing == DataStanding::current);
  append_elsewhere(folder / "d", kStored, kStored + 10, 1);
  CHECK(opened.snapshot->standing().standing == DataStanding::current);
  DataStanding expected = DataStanding::replaced;
  SUBCASE("renamed within the folder") {
    std::filesystem::rename(folder / "new" / "data.mdb", folder / "d" / "data.mdb");
  }
  SUBCASE("another folder in its place") {
    std::filesystem::rename(folder / "d", folder / "old");
    std::filesystem::rename(folder / "new", folder / "d");
  }
  SUBCASE("removed and written again") {
    std::filesystem::remove_all(folder / "d");
    append_elsewhere(folder / "d", 0, kStored, 2);
  }
  SUBCASE("a link that leads elsewhere") {
    std::filesystem::remove(folder / "link");
    std::filesystem::create_directory_symlink(folder / "new", folder / "link");
  }
  SUBCASE("removed") {
    std::filesystem::remove_all(folder / "d");
    expected = DataStanding::removed;
  }
  const DatasetStanding found = opened.snapshot->standing();
  CHECK(found.standing == expected);
  CHECK(contains(found.why, (folder / "link").string()));
  // What is open is what it was.
  CHECK(read_of_value(*opened.snapshot, 1) == 2 * kStored);
  CHECK(opened.snapshot->check_unchanged());
}

TEST_CASE("storage: a writer enters each record's checksum, over the ends of chunks") {
  const TemporaryFolder folder;
  std::uint32_t from = 0;
  for (const std::uint32_t to : {1U, 4083U, 4084U, 4085U, 9000U}) {
    REQUIRE(make_samples(folder / "d", from, to));
    CHECK(known_checksums(folder / "d") == to);
    from = to;
  }
  CHECK(verify_dataset({folder / "d"})->sound());
  const auto earlier = snapshot_of({folder / "d"});
  CHECK(holds_samples(**earlier, 0));
}

TEST_CASE("storage: where an earlier version appended, what it left out is entered or missing") {
  const TemporaryFolder folder;
  SUBCASE("in the last chunk: the next writer enters it") {
    REQUIRE(make_samples(folder / "d", 0, 1000));
    shorten_checksums(folder / "d", 0, 400);
    CHECK(known_checksums(folder / "d") == 400);
    CHECK(verify_dataset({folder / "d"})->sound());
    CHECK(holds_samples(*Opened({folder / "d"}).snapshot, 0));
    REQUIRE(make_samples(folder / "d", 1000, 1001));
    CHECK(known_checksums(folder / "d") == 1001);
  }
  SUBCASE("of a dataset that it wrote alone") {
    REQUIRE(make_samples(folder / "d", 0, 1000));
    leave_out_checksums(folder / "d");
    REQUIRE(make_samples(folder / "d", 1000, 1001));
    CHECK(known_checksums(folder / "d") == 1001);
  }
  SUBCASE("in a chunk that is full: it stays missing") {
    REQUIRE(make_samples(folder / "d", 0, 5000));
    shorten_checksums(folder / "d", 0, 400);
    REQUIRE(make_samples(folder / "d", 5000, 6000));
    CHECK(known_checksums(folder / "d") == 400);
  }
  CHECK(verify_dataset({folder / "d"})->sound());
  CHECK(holds_samples(*Opened({folder / "d"}).snapshot, 0));
}

TEST_CASE("storage: verify compares records with the checksums in the index") {
  const TemporaryFolder folder;
  append(folder / "d", 0, kStored, 1);
  std::string bytes = read_bytes(folder / "d" / "data.mdb");
  const auto record = [&](std::int32_t value) {
    const std::vector<std::int32_t> values(40, value);
    const std::vector<FieldValue> fields = {{std::as_bytes(std::span(values)), 1}};
    const Sequence sequence{"sequence 7", fields};
    std::string text(record_bytes(sequence), '\0');
    const auto out = std::as_writable_bytes(std::span(text));
    write_record(sequence, Ordinal{7}, 1, out);
    set_record_crc(out, crc32c(record_crc_range(out)));
    return text;
  };
  const std::string old = record(1);
  const auto at = bytes.find(old);
  REQUIRE(at != std::string::npos);
  overwrite(folder / "d" / "data.mdb", bytes.replace(at, old.size(), record(2)));
  const auto report = verify_dataset({folder / "d"});
  REQUIRE(report);
  REQUIRE(report->broken.size() == 1);
  CHECK(report->broken[0].reason == "its CRC-32C is not the one in the length index");
}
