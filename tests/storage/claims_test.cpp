// Datasets whose checksums are right and whose figures are not: each field of each structure is set
// to 0, 1, its largest, its neighbour's value and those beside its own, one at a time.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>

#include "storage/dataset/lmdb/environment.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint32_t kSequences = 12;
/// The columns of the length index and the bytes of their values.
constexpr std::array<std::pair<std::uint32_t, std::size_t>, 4> kColumns{
    {{0, 4}, {1, 2}, {2, 4}, {4095, 4}}};
constexpr std::uint64_t kMapBytes = std::uint64_t{1} << 20;

/// Address space that this process may take beyond what it has. AddressSanitizer takes more at once
/// than any limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t more) {
#ifndef __SANITIZE_ADDRESS__
    getrlimit(RLIMIT_AS, &before_);
    rlimit bound = before_;
    bound.rlim_cur = taken() + more;
    REQUIRE(setrlimit(RLIMIT_AS, &bound) == 0);
#else
    static_cast<void>(more);
#endif
  }
  ~MemoryLimit() {
    if (before_.rlim_max != 0) setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;

 private:
  static rlim_t taken() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4096;
  }
  rlimit before_{};
};

/// A number in a value of a table.
struct Field {
  std::size_t offset = 0;
  std::size_t width = 0;
};

std::uint64_t number_at(const std::string& bytes, Field field) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + field.offset, field.width);
  return number;
}

/// A value of a table, its numbers, and what mends its checksum.
struct Structure {
  std::string name;
  Table table = Table::meta;
  std::string key;
  std::vector<Field> fields;
  std::function<void(std::string&)> mend = [](std::string&) {};
};

std::string text_key(std::uint64_t number) {
  const auto key = as_key(number);
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

/// The checksum of all that follows.
void mend_front(std::string& bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)).subspan(4));
  std::memcpy(bytes.data(), &crc, sizeof crc);
}

void mend_record(std::string& bytes) {
  const auto record = std::as_writable_bytes(std::span(bytes));
  set_record_crc(record, crc32c(record_crc_range(record)));
}

std::string value_in(const std::filesystem::path& path, const Structure& structure) {
  const auto transaction = Transaction::begin(*Environment::open(path), Access::read);
  REQUIRE(transaction);
  const auto found = transaction->get(structure.table, as_key(structure.key));
  REQUIRE(found);
  REQUIRE(*found);
  return {reinterpret_cast<const char*>((*found)->data()), (*found)->size()};
}

void replace_value(const std::filesystem::path& path, const Structure& structure,
                   const std::string& value) {
  auto transaction =
      Transaction::begin(*Environment::open_to_write(path, kMapBytes), Access::write);
  REQUIRE(transaction);
  REQUIRE(transaction->put(structure.table, as_key(structure.key), std::as_bytes(std::span(value)),
                           Put::replace));
  REQUIRE(transaction->commit());
}

/// Each number of its own, and the numbers that stand beside it.
std::set<std::uint64_t> wrong_values(const std::string& bytes, const Structure& structure,
                                     std::size_t i) {
  const Field field = structure.fields[i];
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - 8 * field.width);
  const std::uint64_t own = number_at(bytes, field);
  std::set<std::uint64_t> values = {0, 1, most, most / 2 + 1, (own + 1) & most, (own - 1) & most};
  if (i > 0) values.insert(number_at(bytes, structure.fields[i - 1]) & most);
  if (i + 1 < structure.fields.size()) {
    values.insert(number_at(bytes, structure.fields[i + 1]) & most);
  }
  values.insert(std::uint64_t{0x1'0000'0000} & most);
  values.erase(own);
  return values;
}

std::vector<Field> every(std::size_t bytes, std::size_t width) {
  std::vector<Field> fields;
  for (std::size_t at = 0; at + width <= bytes; at += width) fields.push_back({at, width});
  return fields;
}

/// What a dataset of today consists of.
std::vector<Structure> structures(const std::filesystem::path& path) {
  std::vector<Structure> all;
  all.push_back({"state",
                 Table::meta,
                 "state",
                 {{4, 4}, {8, 8}, {16, 8}, {24, 8}, {32, 8}, {40, 4}, {44, 4}},
                 mend_front});
  Structure history{"history", Table::meta, "history/0", {{4, 4}}, mend_front};
  for (std::size_t at = 8; at < value_in(path, history).size(); at += 8)
    history.fields.push_back({at, 8});
  all.push_back(history);
  for (const auto& [column, width] : kColumns) {
    Structure chunk{"column " + std::to_string(column),
                    Table::lengths,
                    text_key(std::uint64_t{column} << 40),
                    {{4, 4}},
                    mend_front};
    for (std::size_t n : {0U, 5U, kSequences - 1}) chunk.fields.push_back({8 + n * width, width});
    all.push_back(std::move(chunk));
  }
  Structure description{"description", Table::meta, "description", {}};
  const std::size_t bytes = value_in(path, description).size();
  for (const std::size_t width : {4U, 1U}) {
    const auto fields = every(bytes, width);
    description.fields.insert(description.fields.end(), fields.begin(), fields.end());
  }
  all.push_back(std::move(description));
  for (const std::uint64_t ordinal : {0U, 5U, kSequences - 1}) {
    Structure record{"record", Table::sequences, text_key(ordinal), {}, mend_record};
    record.fields = {{0, 4}, {8, 2}, {10, 2}, {12, 4}, {16, 8}, {24, 4}, {28, 4}, {32, 8}, {40, 8}};
    const std::size_t size = value_in(path, record).size();
    for (std::size_t at = size - 4 * 24; at < size; at += 24) {
      for (const Field each : {Field{0, 8}, Field{8, 8}, Field{16, 4}, Field{20, 4}}) {
        record.fields.push_back({at + each.offset, each.width});
      }
    }
    all.push_back(std::move(record));
  }
  for (const std::uint32_t n : {0U, 5U, kSequences - 1}) {
    all.push_back({"key", Table::keys, Sample(n).key(), {{0, 8}}});
  }
  return all;
}

/// What the whole dataset has: contents of its commits, with their sequences.
using Commits = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

bool reads_rightly(const Snapshot& snapshot) {
  bool right = snapshot.sequences() <= kSequences;
  for (std::uint32_t n = 0; right && n < snapshot.sequences(); ++n) {
    const Sample expected(n);
    const auto record = snapshot.record(Ordinal{n});
    right = !record || (expected.equals(*record) && snapshot.lengths()[n] == expected.length());
    const auto found = snapshot.find(expected.key());
    right = right && (!found || !*found || (*found)->value == n);
  }
  return right;
}

/// Opened, read, verified and written to. Empty when all of it was refused or right.
std::string read_wrongly(const std::filesystem::path& path, const Commits& commits) {
  const auto report = verify_dataset({path});
  const bool found_out = !report || !report->sound();
  const auto dataset = Catalog().open({path}, VerifyRecords::once, Locking::on, Holding::checksums);
  static_cast<void>(examine_dataset({path}));
  if (dataset) {
    const auto newest = (*dataset)->snapshot();
    if (newest && (*newest)->sequences() != kSequences) return "it has another size";
    if (newest && !reads_rightly(**newest)) return "a record is read wrongly";
    for (const auto& [content, sequences] : commits) {
      const auto then = (*dataset)->snapshot_at(content);
      if (then && !reads_rightly(**then)) return "an earlier one is read wrongly";
      if (then && (*then)->sequences() != sequences && !found_out) return "verify finds it sound";
    }
  }
  WriterLimits limits;
  limits.map_bytes = kMapBytes;
  static_cast<void>(make_samples(path, kSequences, kSequences + 2, limits));
  return {};
}

}  // namespace

TEST_CASE("storage: no figure of a dataset is believed, whatever its checksum says") {
  const TemporaryFolder folder;
  WriterLimits limits;
  limits.map_bytes = kMapBytes;
  Commits commits;
  for (const std::uint32_t n : {0U, 2U, 7U}) {
    REQUIRE(make_samples(folder / "whole", n, n == 0 ? 2 : n == 2 ? 7 : kSequences, limits));
    const auto snapshot = snapshot_of({folder / "whole"});
    commits.emplace_back((*snapshot)->content(), (*snapshot)->sequences());
  }
  std::filesystem::create_directory(folder / "d");
  const MemoryLimit limit(rlim_t{1} << 30);
  std::size_t tried = 0;
  for (const Structure& structure : structures(folder / "whole")) {
    const std::string whole = value_in(folder / "whole", structure);
    for (std::size_t i = 0; i < structure.fields.size(); ++i) {
      for (const std::uint64_t value : wrong_values(whole, structure, i)) {
        CAPTURE(structure.name);
        CAPTURE(structure.fields[i].offset);
        CAPTURE(value);
        std::string wrong = whole;
        std::memcpy(wrong.data() + structure.fields[i].offset, &value, structure.fields[i].width);
        structure.mend(wrong);
        std::filesystem::copy_file(folder / "whole" / "data.mdb", folder / "d" / "data.mdb",
                                   std::filesystem::copy_options::overwrite_existing);
        replace_value(folder / "d", structure, wrong);
        CHECK(read_wrongly(folder / "d", commits).empty());
        ++tried;
      }
    }
  }
  CHECK(tried > 1000);
}

TEST_CASE("storage: a state that claims 2^32 sequences is refused at once, by all that read it") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, kSequences));
  const Structure state{"state", Table::meta, "state", {}};
  std::string claim = value_in(folder / "d", state);
  const std::uint64_t sequences = std::uint64_t{1} << 32;
  std::memcpy(claim.data() + 8, &sequences, sizeof sequences);
  mend_front(claim);
  replace_value(folder / "d", state, claim);
  const MemoryLimit limit(rlim_t{1} << 30);
  const auto refused = [](const auto& result) {
    return !result && result.error().code == ErrorCode::corrupt_record &&
           contains(result.error().message, "its state says 4294967296 sequences, it has 12");
  };
  CHECK(refused(Catalog().open({folder / "d"})));
  CHECK(refused(examine_dataset({folder / "d"})));
  CHECK(refused(verify_dataset({folder / "d"})));
  CHECK(refused(make_samples(folder / "d", kSequences, kSequences + 1)));
}
