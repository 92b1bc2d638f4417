#include "daemon/assembly/disk/read_queue.h"

#include <doctest/doctest.h>

#include <array>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

constexpr std::size_t kRow = ReadQueue::kLeastReadBytes;  // each is a read of its own

/// A file in memory, never read, and an epoch that is alive.
struct File {
  std::vector<std::byte> bytes = std::vector<std::byte>(64 * kRow);
  std::shared_ptr<EpochSource> source =
      plan_of(std::make_shared<MadeUpSnapshot>(frames_only(DType::float32, {4}),
                                               std::vector<std::uint32_t>{1, 1}),
              in_order(1));

  WantedRow row(std::size_t place, std::size_t size = kRow) const {
    return {MapBytes(bytes).subspan(place * kRow, size), {}, size, true};
  }
  /// A batch of the rows at these places.
  WantedBatch batch(std::uint64_t index, const std::vector<std::size_t>& places) const {
    WantedBatch batch{{Epoch{0}, BatchIndex{index}}, source, nullptr, {}};
    for (const std::size_t place : places) batch.rows.push_back(row(place));
    return batch;
  }
  std::size_t place(const Read& read) const {
    return static_cast<std::size_t>(read.rows[0].record.data() - bytes.data()) / kRow;
  }
};

BatchId id(std::uint64_t index) { return {Epoch{0}, BatchIndex{index}}; }

std::vector<std::size_t> places(const File& file, ReadQueue& queue) {
  std::vector<std::size_t> all;
  while (const auto read = queue.take()) all.push_back(file.place(*read));
  return all;
}

}  // namespace

TEST_CASE("assembly: rows are read in the file's order within the window, batches in theirs") {
  const File file;
  ReadQueue queue;
  queue.set_limits(1000 * kRow, 4 * kRow);
  queue.put("a", file.batch(0, {9, 3}));
  queue.put("a", file.batch(1, {6, 1}));
  queue.put("a", file.batch(2, {4, 2}));
  CHECK(places(file, queue) == std::vector<std::size_t>{1, 3, 6, 9, 2, 4});
  CHECK(queue.empty());
  CHECK_FALSE(queue.is_idle());
}

TEST_CASE("assembly: a window that is smaller than a batch takes the batch") {
  const File file;
  ReadQueue queue;
  queue.set_limits(1000 * kRow, 1);
  queue.put("a", file.batch(0, {9, 3}));
  queue.put("a", file.batch(1, {6}));
  CHECK(places(file, queue) == std::vector<std::size_t>{3, 9, 6});
}

TEST_CASE("assembly: long rows are read in stretches, short ones together") {
  const File file;
  ReadQueue queue;
  WantedBatch batch = file.batch(0, {});
  batch.rows = {file.row(0, 10 * kRow), file.row(20, 100), file.row(21, 100), file.row(22, 100)};
  queue.put("a", std::move(batch));
  std::vector<std::size_t> sizes;
  std::vector<std::size_t> rows;
  while (const auto read = queue.take()) {
    sizes.push_back(read->bytes);
    rows.push_back(read->rows.size());
  }
  CHECK(sizes == std::vector<std::size_t>{4 * kRow, 4 * kRow, 2 * kRow, 300});
  CHECK(rows == std::vector<std::size_t>{1, 1, 1, 3});
}

TEST_CASE("assembly: feeds that share a disk take turns, and one that comes later gets no credit") {
  const File file;
  ReadQueue queue;
  queue.set_limits(1000 * kRow, kRow);
  for (std::uint64_t i = 0; i < 20; ++i) queue.put("a", file.batch(i, {i}));
  for (int i = 0; i < 10; ++i) CHECK(queue.take()->feed == "a");
  for (std::uint64_t i = 0; i < 20; ++i) queue.put("b", file.batch(i, {30 + i}));
  std::map<std::string, int> reads;
  for (int i = 0; i < 8; ++i) ++reads[queue.take()->feed];
  CHECK(reads["a"] == 4);
  CHECK(reads["b"] == 4);
}

TEST_CASE("assembly: turns are by bytes, not by reads") {
  const File file;
  ReadQueue queue;
  queue.set_limits(1000 * kRow, kRow);
  for (std::uint64_t i = 0; i < 16; ++i) {
    queue.put("short", file.batch(i, {i}));
    WantedBatch batch = file.batch(i, {});
    batch.rows = {file.row(20, 3 * kRow)};
    queue.put("long", std::move(batch));
  }
  std::map<std::string, int> reads;
  for (int i = 0; i < 12; ++i) ++reads[queue.take()->feed];
  CHECK(reads["short"] == 9);
  CHECK(reads["long"] == 3);
}

TEST_CASE("assembly: a feed is not read further ahead than the limit, until batches are used") {
  const File file;
  ReadQueue queue;
  queue.set_limits(2 * kRow, kRow);
  for (std::uint64_t i = 0; i < 4; ++i) queue.put("a", file.batch(i, {i}));
  CHECK(places(file, queue) == std::vector<std::size_t>{0, 1});
  CHECK(queue.ahead_bytes() == 2 * kRow);
  queue.used("a", id(0));
  CHECK(places(file, queue) == std::vector<std::size_t>{2});
  queue.used("a", id(1));
  queue.used("a", id(2));
  queue.used("a", id(7));  // was never asked for
  CHECK(places(file, queue) == std::vector<std::size_t>{3});
}

TEST_CASE("assembly: a batch that was assembled meanwhile is not read") {
  const File file;
  ReadQueue queue;
  queue.set_limits(1000 * kRow, kRow);
  queue.put("a", file.batch(0, {5, 6}));
  queue.put("a", file.batch(1, {7}));
  CHECK(file.place(*queue.take()) == 5);
  queue.used("a", id(0));
  CHECK(queue.ahead_bytes() == 0);
  CHECK(places(file, queue) == std::vector<std::size_t>{7});
}

TEST_CASE("assembly: a record is wanted until the last batch that needs it is assembled") {
  const File file;
  ReadQueue queue;
  const MapBytes record = file.row(5).record;
  CHECK_FALSE(queue.wants(record));
  queue.put("a", file.batch(0, {5}));
  queue.put("b", file.batch(9, {5}));
  static_cast<void>(places(file, queue));
  queue.used("a", id(0));
  CHECK(queue.wants(record));
  queue.used("b", id(9));
  CHECK_FALSE(queue.wants(record));
  CHECK(queue.is_idle());
}

TEST_CASE("assembly: a full queue forgets the oldest batch") {
  const File file;
  ReadQueue queue;
  for (std::uint64_t i = 0; i <= ReadQueue::kCapacity; ++i) queue.put("a", file.batch(i, {i % 60}));
  queue.used("a", id(0));  // is not there
  std::size_t reads = 0;
  while (queue.take()) ++reads;
  CHECK(reads == ReadQueue::kCapacity);
}

TEST_CASE("assembly: what was read for an epoch that ended does not count as ahead") {
  const File file;
  ReadQueue queue;
  queue.set_limits(kRow, kRow);
  {
    const File ended;
    queue.put("a", ended.batch(0, {0}));
    REQUIRE(queue.take());
  }
  queue.put("a", file.batch(1, {1}));
  CHECK(queue.take());
}

TEST_CASE("assembly: a batch without rows is passed over") {
  const File file;
  ReadQueue queue;
  queue.put("a", file.batch(0, {}));
  CHECK_FALSE(queue.take());
  queue.put("a", file.batch(1, {1}));
  CHECK(places(file, queue) == std::vector<std::size_t>{1});
}
