#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "storage/dataset/dataset.h"
#include "tests/support/no_threads.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;

namespace {

constexpr std::uint32_t kLong = 50'000;  // frames of four bytes
constexpr std::uint32_t kShort = 5;

/// The dataset of sequences with these lengths.
std::shared_ptr<const Snapshot> stored(const std::filesystem::path& path,
                                       const std::vector<std::uint32_t>& lengths) {
  const Schema schema{{{"values", FieldKind::primary, DType::float32, {}, {}}}, {}};
  auto writer = DatasetWriter::open(path, schema);
  REQUIRE(writer);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<float> values(lengths[i], static_cast<float>(i));
    const FieldValue field{std::as_bytes(std::span(values)), lengths[i]};
    REQUIRE(writer->append({std::to_string(i), {&field, 1}}));
  }
  REQUIRE(writer->commit());
  // What was written lies in large pages that several records share; read again, in small ones.
  const int file = open((path / "data.mdb").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  CHECK(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
  close(file);
  const auto dataset = Catalog().open({path});
  REQUIRE(dataset);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  return *snapshot;
}

/// The share of the record's pages that are in memory.
double in_memory(const Snapshot& snapshot, std::uint64_t ordinal) {
  const auto place = snapshot.place(Ordinal{ordinal});
  REQUIRE(place);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(place->bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(place->bytes.data() + place->bytes.size());
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  REQUIRE(mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) == 0);
  const auto there = std::count_if(pages.begin(), pages.end(), [](auto p) { return (p & 1) != 0; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

/// How often this thread waits for the disk while it looks all sequences up.
long waits_of_look_ups(const Snapshot& snapshot) {
  rusage before = {};
  rusage after = {};
  REQUIRE(getrusage(RUSAGE_THREAD, &before) == 0);
  for (std::uint64_t i = 0; i < snapshot.sequences(); ++i) REQUIRE(snapshot.place(Ordinal{i}));
  REQUIRE(getrusage(RUSAGE_THREAD, &after) == 0);
  return after.ru_majflt - before.ru_majflt;
}

/// Where the file system is memory, nothing leaves it.
bool is_on_disk(const std::filesystem::path& path) {
  struct statfs system = {};
  REQUIRE(statfs(path.c_str(), &system) == 0);
  return system.f_type != TMPFS_MAGIC;
}

}  // namespace

TEST_CASE("storage: a record is where its bytes are, on the disk of its file") {
  const test::TemporaryFolder folder;
  const auto snapshot = stored(folder / "d", {kLong, kShort});
  for (const std::uint64_t ordinal : {0U, 1U}) {
    const auto place = snapshot->place(Ordinal{ordinal});
    REQUIRE(place);
    const auto record = snapshot->record(Ordinal{ordinal});
    REQUIRE(record);
    const auto values = record->field(0).bytes;
    CHECK(values.data() > place->bytes.data());
    CHECK(values.data() + values.size() <= place->bytes.data() + place->bytes.size());
    struct stat status = {};
    REQUIRE(stat((folder / "d" / "data.mdb").c_str(), &status) == 0);
    CHECK(place->device == status.st_dev);
    CHECK(snapshot->file_bytes() == static_cast<std::uint64_t>(status.st_size));
  }
  CHECK_FALSE(snapshot->place(Ordinal{2}));
}

TEST_CASE("storage: what is let go leaves memory, its neighbours stay, and it can be brought in") {
  const test::TemporaryFolder folder;
  if (!is_on_disk(folder / ".")) return;
  const auto snapshot = stored(folder / "d", {kLong, kLong, kLong});
  for (const std::uint64_t ordinal : {0U, 1U, 2U}) {
    prefetch(snapshot->place(Ordinal{ordinal})->bytes);
    bring_in(snapshot->place(Ordinal{ordinal})->bytes);
    REQUIRE(in_memory(*snapshot, ordinal) == 1.0);
  }
  snapshot->let_go(Ordinal{1});
  CHECK(in_memory(*snapshot, 0) == 1.0);
  CHECK(in_memory(*snapshot, 1) == 0.0);
  CHECK(in_memory(*snapshot, 2) == 1.0);
  bring_in(snapshot->place(Ordinal{1})->bytes);
  CHECK(in_memory(*snapshot, 1) == 1.0);
  const auto record = snapshot->record(Ordinal{1});
  REQUIRE(record);
  CHECK(record->length() == kLong);
}

TEST_CASE("storage: a page that records share is not let go") {
  const test::TemporaryFolder folder;
  const auto snapshot = stored(folder / "d", {kShort, kShort});
  bring_in(snapshot->place(Ordinal{0})->bytes);
  snapshot->let_go(Ordinal{0});
  snapshot->let_go(Ordinal{7});  // there is none
  CHECK(in_memory(*snapshot, 1) == 1.0);
}

TEST_CASE("storage: bytes that cannot be brought in do no harm") {
  bring_in({});
  prefetch({});
  const test::TemporaryFolder folder;
  const auto snapshot = stored(folder / "d", {kLong});
  const auto place = snapshot->place(Ordinal{0});
  std::filesystem::resize_file(folder / "d" / "data.mdb", 4096);
  bring_in(place->bytes);
  CHECK(snapshot->record(Ordinal{0}).error().code == ErrorCode::store_unavailable);
}

TEST_CASE("storage: once the tree is brought in, no look-up waits for the disk") {
  const test::TemporaryFolder folder;
  if (!is_on_disk(folder / ".")) return;
  const std::vector<std::uint32_t> lengths(5000, kShort);  // on some 100 pages
  const auto tree_of = [&](const char* name, std::uint64_t most_bytes, bool stopped) {
    const auto snapshot = stored(folder / name, lengths);
    std::stop_source stop;
    if (stopped) stop.request_stop();
    snapshot->bring_in_tree(most_bytes, stop.get_token());
    return waits_of_look_ups(*snapshot);
  };
  CHECK(tree_of("all", UINT64_MAX, false) == 0);
  CHECK(tree_of("too large", 64 << 10, false) > 50);
  CHECK(tree_of("stopped", UINT64_MAX, true) > 50);
  const test::NoThreads none;
  CHECK(tree_of("without a thread", UINT64_MAX, false) > 50);
}

TEST_CASE("storage: a tree that cannot be brought in does no harm") {
  const test::TemporaryFolder folder;
  stored(folder / "none", {})->bring_in_tree(UINT64_MAX, {});
  const auto snapshot = stored(folder / "d", std::vector<std::uint32_t>(5000, kShort));
  std::filesystem::resize_file(folder / "d" / "data.mdb", 16384);
  snapshot->bring_in_tree(UINT64_MAX, {});
  CHECK(snapshot->record(Ordinal{4999}).error().code == ErrorCode::store_unavailable);
}

TEST_CASE("storage: a record that was looked up is verified like any other") {
  const test::TemporaryFolder folder;
  const auto snapshot = stored(folder / "d", {kLong, kShort});
  const auto first = snapshot->place(Ordinal{0});
  REQUIRE(first);
  const auto record = snapshot->record(Ordinal{0}, *first);
  REQUIRE(record);
  CHECK(record->length() == kLong);
  // A place is that of its own sequence, and of no other.
  CHECK(snapshot->record(Ordinal{1}, *first).error().code == ErrorCode::corrupt_record);
  CHECK(snapshot->record(Ordinal{2}, *first).error().code == ErrorCode::not_found);
}
