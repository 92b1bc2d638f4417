#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/formats.h"

using namespace batchwright;

namespace {

using RecordKind = JournalRecord::Kind;

/// A plan, an epoch, and so many batches that were given.
std::vector<JournalRecord> journal_of(std::uint64_t batches) {
  std::vector<JournalRecord> records = {JournalRecord{0, RecordKind::plan, 1, 2, 3}.sealed(),
                                        JournalRecord{0, RecordKind::epoch, 1, 7, 0}.sealed()};
  for (std::uint64_t i = 0; i < batches; ++i) {
    records.push_back(JournalRecord{0, RecordKind::given, i + 1, i, 9}.sealed());
  }
  return records;
}

std::string bytes_of_journal(const std::vector<JournalRecord>& records) {
  std::string bytes(records.size() * sizeof(JournalRecord), 0);
  std::memcpy(bytes.data(), records.data(), bytes.size());
  return bytes;
}

struct Scanned {
  JournalContent content;
  std::vector<std::uint64_t> given;  ///< Batches.
  std::string fault;
};

Scanned scan(const std::string& bytes) {
  Scanned scanned;
  const ReadAt read = [&bytes](std::span<std::byte> into, std::uint64_t offset) {
    const std::size_t size = std::min<std::size_t>(into.size(), bytes.size() - offset);
    std::memcpy(into.data(), bytes.data() + offset, size);
    return Result<std::size_t>(size);
  };
  const auto content = scan_journal(read, [&scanned](const JournalRecord& record) {
    if (record.kind == RecordKind::given) scanned.given.push_back(record.second);
  });
  REQUIRE(content);
  scanned.content = *content;
  const auto sound = check_journal(*content, "j");
  if (!sound) scanned.fault = sound.error().message;
  return scanned;
}

}  // namespace

TEST_CASE("formats: a bit that flips in a journal is damage wherever a sound record follows") {
  constexpr std::uint64_t kBatches = 13;
  const std::string sound = bytes_of_journal(journal_of(kBatches));
  const std::size_t last = sound.size() - sizeof(JournalRecord);
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Scanned scanned = scan(flipped);
    CAPTURE(bit);
    if (bit / 8 < last) {
      REQUIRE(scanned.fault.find("it is damaged") != std::string::npos);
      REQUIRE(scanned.content.damaged == bit / 8 / sizeof(JournalRecord) * sizeof(JournalRecord));
      REQUIRE(scanned.content.damaged_records == 1);
    } else {  // it may be what a death has left
      REQUIRE(scanned.fault.empty());
      REQUIRE(scanned.given.size() == kBatches - 1);
      REQUIRE(scanned.content.end == last);
    }
  }
}

TEST_CASE("formats: a bit that flips in a journal that has just begun an epoch is damage") {
  const std::string sound = bytes_of_journal(journal_of(0));
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    REQUIRE(scan(flipped).fault.find("it is damaged") != std::string::npos);
  }
}

TEST_CASE("formats: a journal that is cut anywhere holds what came before, if it has an epoch") {
  const std::string sound = bytes_of_journal(journal_of(5));
  CHECK(scan("").fault.empty());  // new
  for (std::size_t size = 1; size < sound.size(); ++size) {
    CAPTURE(size);
    const Scanned scanned = scan(sound.substr(0, size));
    REQUIRE(scanned.fault.empty() == (size >= 64));
    if (size < 64) continue;
    REQUIRE(scanned.given.size() == (size - 64) / 32);
    REQUIRE(scanned.content.trailing() == 0);
  }
}

TEST_CASE("formats: zeros up to a page's end are a power cut's, and all others are damage") {
  constexpr std::size_t kPage = 4096;
  const std::string sound = bytes_of_journal(journal_of(3 * kPage / 32 - 2));
  REQUIRE(sound.size() == 3 * kPage);
  const auto zeroed = [&sound](std::size_t from, std::size_t to) {
    std::string bytes = sound;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
              bytes.begin() + static_cast<std::ptrdiff_t>(to), 0);
    return scan(bytes);
  };
  const Scanned page = zeroed(kPage, 2 * kPage);
  CHECK(page.fault.empty());
  CHECK(page.content.lost == kPage / 32);
  CHECK(page.given.size() == 2 * kPage / 32 - 2);
  CHECK(zeroed(kPage / 2, kPage).content.lost == kPage / 64);
  CHECK(zeroed(kPage - 32, 2 * kPage).fault.empty());
  CHECK_FALSE(zeroed(kPage, 2 * kPage - 32).fault.empty());
  CHECK_FALSE(zeroed(kPage, kPage + 32).fault.empty());
  CHECK(zeroed(0, kPage).fault.find("does not begin with its plan") != std::string::npos);
  // After the last sound record there may be anything.
  const Scanned end = zeroed(2 * kPage + 64, 3 * kPage);
  CHECK(end.fault.empty());
  CHECK(end.content.lost == 0);
  CHECK(end.content.trailing() == (kPage - 64) / 32);
}

TEST_CASE("formats: a record of a kind that is not known is another version's") {
  auto records = journal_of(1);
  records.push_back(JournalRecord{0, static_cast<RecordKind>(5), 1, 1, 1}.sealed());
  CHECK(scan(bytes_of_journal(records)).fault.find("a record of kind 5, which a newer version") !=
        std::string::npos);
}

TEST_CASE("formats: bytes that are no journal are called so") {
  CHECK(scan(std::string(1000, 'x')).fault.find("is not the journal of a queue") !=
        std::string::npos);
  CHECK(scan(std::string(1000, 0)).fault.find("is not the journal of a queue") !=
        std::string::npos);
}
