#include "storage/dataset/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "formats/formats.h"
#include "storage/dataset/lmdb/fault_guard.h"
#include "storage/dataset/lmdb/file_system.h"

namespace batchwright {
namespace {

/// Reads one column of all shards behind one another.
template <class Value>
Result<std::vector<Value>> read_whole_column(const std::vector<PinnedShard>& shards, Column column,
                                             std::uint64_t sequences) {
  auto there = probe_memory(sequences, sizeof(Value), "the index");
  if (!there) return there.error();
  std::vector<Value> values(sequences);
  std::span<std::byte> rest = std::as_writable_bytes(std::span(values));
  for (const PinnedShard& shard : shards) {
    const std::size_t bytes = shard.commit.sequences * sizeof(Value);
    auto read =
        read_column(shard.transaction, column, shard.state.state.sequences, rest.first(bytes));
    if (!read) return read.error();
    rest = rest.subspan(bytes);
  }
  return values;
}

}  // namespace

PinnedSnapshot::PinnedSnapshot(Schema schema, std::vector<PinnedShard> shards, VerifyRecords verify)
    : schema_(std::move(schema)),
      verify_(verify),
      independent_(independent_fields(schema_)),
      shards_(std::move(shards)),
      mutexes_(std::make_unique<Mutex[]>(shards_.size())),
      firsts_{0} {
  for (PinnedShard& shard : shards_) {
    shard.device = shard.transaction.environment().device();
    shard.page_bytes = shard.transaction.environment().page_bytes();
    counts_.push_back(shard.commit.sequences);
    firsts_.push_back(firsts_.back() + shard.commit.sequences);
  }
}

Result<std::shared_ptr<const PinnedSnapshot>> PinnedSnapshot::pin(Schema schema,
                                                                  std::vector<PinnedShard> shards,
                                                                  VerifyRecords verify,
                                                                  Holding holding) {
  std::shared_ptr<PinnedSnapshot> snapshot(
      new PinnedSnapshot(std::move(schema), std::move(shards), verify));
  if (auto read = snapshot->read_index(); !read) return read.error();
  if (holding == Holding::checksums) {
    if (auto read = snapshot->read_checksums(); !read) return read.error();
  }
  return std::shared_ptr<const PinnedSnapshot>(std::move(snapshot));
}

Result<void> PinnedSnapshot::read_index() {
  auto lengths = read_whole_column<std::uint32_t>(shards_, kLengthColumn, sequences());
  if (!lengths) return lengths.error();
  lengths_ = std::move(*lengths);
  auto key_bytes = read_whole_column<std::uint16_t>(shards_, kKeyBytesColumn, sequences());
  if (!key_bytes) return key_bytes.error();
  key_bytes_ = std::move(*key_bytes);
  for (std::size_t n = 0; n < independent_.size(); ++n) {
    auto column = read_whole_column<std::uint32_t>(shards_, independent_column(n), sequences());
    if (!column) return column.error();
    field_lengths_.push_back(std::move(*column));
  }
  return {};
}

Result<void> PinnedSnapshot::read_checksums() {
  for (PinnedShard& shard : shards_) {
    auto read = RecordChecksums::read(shard.transaction, shard.state.state.sequences,
                                      shard.commit.sequences);
    if (!read) return read.error();
    shard.checksums = std::move(*read);
  }
  return {};
}

std::uint64_t PinnedSnapshot::generation() const {
  std::uint64_t sum = 0;
  for (const PinnedShard& shard : shards_) sum += shard.commit.generation;
  return sum;
}

std::uint64_t PinnedSnapshot::content() const {
  std::uint64_t content = shards_.front().commit.content;
  for (std::size_t i = 1; i < shards_.size(); ++i) {
    content = join_content(content, shards_[i].commit.content);
  }
  return content;
}

std::span<const std::uint32_t> PinnedSnapshot::field_lengths(std::size_t field) const {
  const auto found = std::find(independent_.begin(), independent_.end(), field);
  if (found == independent_.end()) return {};
  return field_lengths_[static_cast<std::size_t>(found - independent_.begin())];
}

PinnedSnapshot::Place PinnedSnapshot::place_of(Ordinal ordinal) const {
  // The last shard that begins at or before it: an empty one begins where the next does.
  const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), ordinal.value);
  const auto shard = static_cast<std::size_t>(next - firsts_.begin()) - 1;
  return {shard, ordinal.value - firsts_[shard]};
}

Result<MapBytes> PinnedSnapshot::bytes_of(const Place& place) const {
  // For the look-up alone: LMDB allows one thread at a time in a transaction. The bytes stay where
  // they are as long as the snapshot lives, and are read without a lock.
  const MutexLock lock(mutexes_[place.shard]);
  const auto found = shards_[place.shard].transaction.get(Table::sequences, as_key(place.local));
  if (!found) return broken(place, found.error());
  if (!*found) return broken(place, {ErrorCode::corrupt_record, "its record is missing"});
  return **found;
}

Error PinnedSnapshot::broken(const Place& place, const Error& error) const {
  const auto& path = shards_[place.shard].transaction.environment().path();
  const std::string dataset = fmt::format("dataset {}", path.string());
  // Errors of the environment name the dataset themselves.
  const bool named = error.message.starts_with(dataset + ": ");
  return {error.code,
          fmt::format("{}, sequence {}: {}", dataset, place.local,
                      named ? error.message.substr(dataset.size() + 2) : error.message)};
}

Error PinnedSnapshot::beyond(Ordinal ordinal) const {
  return {ErrorCode::not_found,
          fmt::format("sequence {}: the snapshot has {}", ordinal.value, sequences())};
}

Result<RecordView> PinnedSnapshot::record(Ordinal ordinal) const {
  if (ordinal.value >= sequences()) return beyond(ordinal);
  const Place place = place_of(ordinal);
  const auto bytes = bytes_of(place);
  return unchanged(place, bytes ? checked_record(ordinal, place, *bytes) : bytes.error());
}

Result<RecordView> PinnedSnapshot::record(Ordinal ordinal, const RecordPlace& found) const {
  if (ordinal.value >= sequences()) return beyond(ordinal);
  const Place place = place_of(ordinal);
  return unchanged(place, checked_record(ordinal, place, found.bytes));
}

/// What was written over is no corruption, and may look sound.
Result<RecordView> PinnedSnapshot::unchanged(const Place& place, Result<RecordView> record) const {
  const PinnedShard& shard = shards_[place.shard];
  auto checked = shard.transaction.check_unchanged();
  if (checked && !record && record.error().code == ErrorCode::corrupt_record) {
    checked = check_state(shard);
  }
  return checked ? std::move(record) : checked.error();
}

Result<RecordView> PinnedSnapshot::checked_record(Ordinal ordinal, const Place& place,
                                                  MapBytes bytes) const {
  auto record = parse(ordinal, place, bytes);
  // Bounds and index are compared each time: LMDB's own pages may lead to another record.
  if (!record || verify_ == VerifyRecords::never) return record;
  auto& verified = shards_[place.shard].verified;
  if (verified && verified->test(place.local)) return record;
  if (auto checked = check_crc(place, bytes, *record); !checked) return checked.error();
  // After the check: two threads may both check a record, and neither believes an unchecked one.
  if (verified) verified->set(place.local);
  return record;
}

Result<void> PinnedSnapshot::check_unchanged() const {
  for (const PinnedShard& shard : shards_) {
    if (auto unchanged = shard.transaction.check_unchanged(); !unchanged) return unchanged;
    if (auto same = check_state(shard); !same) return same;
  }
  return {};
}

Result<RecordView> PinnedSnapshot::parse(Ordinal ordinal, const Place& place,
                                         MapBytes bytes) const {
  std::optional<Result<RecordView>> record;
  const char* disagreement = nullptr;
  std::uint32_t checksum = 0;
  // RecordView::parse() owns nothing while it reads; its error text is made between reads.
  const bool readable = guarded([&] {
    record.emplace(RecordView::parse(schema_, bytes));
    if (!*record) return;
    disagreement = index_disagreement(ordinal, place, **record);
    checksum = record_crc(bytes);
  });
  if (!readable) {
    return broken(place, shards_[place.shard].transaction.environment().fault());
  }
  if (!*record) return broken(place, record->error());
  const auto expected = shards_[place.shard].checksums.of(place.local);
  if (expected && *expected != checksum && (*record)->ordinal().value == place.local) {
    return other_content(place, bytes);
  }
  if (disagreement != nullptr) return broken(place, {ErrorCode::corrupt_record, disagreement});
  return std::move(*record);
}

/// What plans and slots rely on. Reads the map.
const char* PinnedSnapshot::index_disagreement(Ordinal ordinal, const Place& place,
                                               const RecordView& record) const {
  if (record.ordinal().value != place.local) return "its record is of another sequence";
  if (record.length() != lengths_[ordinal.value]) return "its length is not the one in the index";
  if (record.key().size() != key_bytes_[ordinal.value]) return "its key is not as in the index";
  for (std::size_t n = 0; n < independent_.size(); ++n) {
    if (record.field(independent_[n]).length != field_lengths_[n][ordinal.value]) {
      return "the length of an independent field is not the one in the index";
    }
  }
  return nullptr;
}

/// The message has the key as it is stored, though the key may be what is corrupt.
Result<void> PinnedSnapshot::check_crc(const Place& place, MapBytes bytes,
                                       const RecordView& record) const {
  std::uint32_t computed = 0;
  std::uint32_t stored = 0;
  std::array<char, kMaxKeyBytes> key{};
  const bool readable = guarded([&] {
    computed = crc32c(record_crc_range(bytes));
    stored = record_crc(bytes);
    std::memcpy(key.data(), record.key().data(), record.key().size());
  });
  if (!readable) {
    return broken(place, shards_[place.shard].transaction.environment().fault());
  }
  if (computed == stored) return {};
  return broken(place, {ErrorCode::corrupt_record,
                        fmt::format("key \"{}\": CRC-32C is {:08x}, its record says {:08x}",
                                    printable(std::string(key.data(), record.key().size())),
                                    computed, stored)});
}

/// Of a record that carries another checksum than the index says: is it damaged, or written by
/// others, with a checksum that is its own?
Error PinnedSnapshot::other_content(const Place& place, MapBytes bytes) const {
  bool own = false;
  Environment& environment = shards_[place.shard].transaction.environment();
  if (!guarded([&] { own = crc32c(record_crc_range(bytes)) == record_crc(bytes); })) {
    return broken(place, environment.fault());
  }
  if (own) return environment.overwritten();
  return broken(place, {ErrorCode::corrupt_record, "its CRC-32C is not the one in the index"});
}

std::optional<RecordPlace> PinnedSnapshot::place(Ordinal ordinal) const {
  if (ordinal.value >= sequences()) return {};
  const Place place = place_of(ordinal);
  const auto bytes = bytes_of(place);
  if (!bytes) return {};
  return RecordPlace{*bytes, shards_[place.shard].device};
}

Result<std::optional<Ordinal>> PinnedSnapshot::find_in(std::size_t shard,
                                                       std::string_view key) const {
  const Transaction& transaction = shards_[shard].transaction;
  std::array<std::byte, sizeof(std::uint64_t)> number{};
  {
    const MutexLock lock(mutexes_[shard]);
    const auto found = transaction.get(Table::keys, as_key(key));
    if (!found) return found.error();
    if (!*found) return std::optional<Ordinal>();
    if ((*found)->size() != number.size()) {
      return Error{
          ErrorCode::corrupt_record,
          fmt::format("dataset {}: key \"{}\" leads to no sequence",
                      transaction.environment().path().string(), printable(std::string(key)))};
    }
    if (auto copied = copy_from_map(number, **found); !copied) return copied.error();
  }
  const auto local = std::bit_cast<std::uint64_t>(number);
  // Of an earlier commit: what was appended behind it is not in this snapshot.
  if (local >= counts_[shard]) return std::optional<Ordinal>();
  return std::optional<Ordinal>(Ordinal{firsts_[shard] + local});
}

Result<std::optional<Ordinal>> PinnedSnapshot::find(std::string_view key) const {
  // No dataset has such a key, and LMDB calls it an error to look for an empty one.
  if (key.empty() || key.size() > kMaxKeyBytes) return std::optional<Ordinal>();
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    auto found = find_in(shard, key);
    if (!found) return found;
    if (!*found) continue;
    if (auto same = check_key(**found, key); !same) return same.error();
    return found;
  }
  return std::optional<Ordinal>();
}

/// The table of keys has no checksum.
Result<void> PinnedSnapshot::check_key(Ordinal ordinal, std::string_view key) const {
  const Place place = place_of(ordinal);
  const auto bytes = bytes_of(place);
  const auto record = bytes ? parse(ordinal, place, *bytes) : bytes.error();
  bool same = false;
  // What is wrong with a record is for those who read it.
  if (!record || !guarded([&] { same = record->key() == key; }) || same) return {};
  return broken(
      place, {ErrorCode::corrupt_record, fmt::format("key \"{}\" leads to it, which is not its own",
                                                     printable(std::string(key)))});
}

void PinnedSnapshot::let_go(Ordinal ordinal) const {
  if (ordinal.value >= sequences()) return;
  const Place place = place_of(ordinal);
  const auto bytes = bytes_of(place);
  // A record as large as a page has pages of its own; shorter ones may share theirs.
  if (!bytes || bytes->size() < shards_[place.shard].page_bytes) return;
  if (const auto file = file_of(place, *bytes)) batchwright::let_go(*bytes, *file);
}

/// The map stays where it is as long as the snapshot lives.
std::optional<MapOrigin> PinnedSnapshot::file_of(const Place& place, MapBytes bytes) const {
  const MutexLock lock(mutexes_[place.shard]);
  PinnedShard& shard = shards_[place.shard];
  if (shard.file.begin == nullptr) {
    const auto offset = file_offset_of(bytes.data());
    if (!offset) return {};
    shard.file = {shard.transaction.environment().descriptor(), bytes.data() - *offset};
  }
  return shard.file;
}

std::uint64_t PinnedSnapshot::file_bytes() const {
  std::uint64_t sum = 0;
  for (const PinnedShard& shard : shards_) sum += shard.transaction.environment().file_bytes();
  return sum;
}

}  // namespace batchwright
