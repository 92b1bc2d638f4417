#include "storage/dataset/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "formats/formats.h"
#include "storage/dataset/checksums.h"
#include "storage/dataset/history.h"
#include "storage/dataset/length_index.h"
#include "storage/dataset/lmdb/fault_guard.h"
#include "storage/dataset/reader.h"
#include "storage/dataset/state.h"

namespace batchwright {
namespace {

/// Records that the kernel is asked for ahead of the one that is checked.
constexpr std::uint64_t kAhead = 64;
/// Records between two reports of progress.
constexpr std::uint64_t kProgressEvery = 1024;

/// What one record says of itself, out of the map.
struct Found {
  RecordSummary summary;
  std::string key;
  std::vector<std::uint32_t> columns;  // as in the length index
  std::string wrong;                   // why it cannot be trusted; empty when it can
};

/// One shard, read under one transaction.
class ShardCheck {
 public:
  ShardCheck(const Transaction& transaction, const Meta& meta, VerifyReport& report)
      : transaction_(transaction),
        schema_(meta.schema),
        state_(meta.state),
        independent_(independent_fields(meta.schema)),
        rebuilt_(empty_state(meta.schema)),
        report_(report) {}

  /// Reads length index and history; what cannot be read is a problem, and is not compared.
  void read_index();
  void check_record(std::uint64_t ordinal);
  /// What only shows when all records were read.
  void check_totals();

 private:
  Result<Found> read(std::uint64_t ordinal) const;
  Result<void> check_key(std::uint64_t ordinal, const std::string& key) const;
  bool matches_index(std::uint64_t ordinal, const Found& found) const;
  void check_commits();
  void broken(std::uint64_t ordinal, std::string key, std::string reason);
  void problem(const std::string& what);
  void compare(std::string_view what, std::uint64_t found, std::uint64_t expected);

  const Transaction& transaction_;
  const Schema& schema_;
  const DatasetState& state_;
  const std::vector<std::size_t> independent_;
  std::vector<std::vector<std::uint32_t>> index_;  // by column; empty: not readable
  RecordChecksums checksums_;                      // where there are any
  std::vector<Commit> history_;                    // newest first, of what is not yet compared
  DatasetState rebuilt_;
  bool all_sound_ = true;
  VerifyReport& report_;
};

void ShardCheck::broken(std::uint64_t ordinal, std::string key, std::string reason) {
  report_.broken.push_back({transaction_.environment().path(), Ordinal{ordinal},
                            printable(std::move(key)), std::move(reason)});
}

void ShardCheck::problem(const std::string& what) { report_.problems.push_back(what); }

void ShardCheck::compare(std::string_view what, std::uint64_t found, std::uint64_t expected) {
  if (found == expected) return;
  problem(fmt::format("dataset {}: {}: found {}, the state says {}",
                      transaction_.environment().path().string(), what, found, expected));
}

void ShardCheck::read_index() {
  for (const Column column : columns_of(schema_)) {
    std::vector<std::byte> packed(state_.sequences * column.width);
    std::vector<std::uint32_t> values;
    if (auto read = read_column(transaction_, column, state_.sequences, packed); !read) {
      problem(read.error().message);
    } else {
      values.resize(state_.sequences);
      for (std::uint64_t i = 0; i < state_.sequences; ++i) {
        std::memcpy(&values[i], packed.data() + i * column.width, column.width);
      }
    }
    index_.push_back(std::move(values));
  }
  auto checksums = RecordChecksums::read(transaction_, state_.sequences, state_.sequences);
  if (checksums) {
    checksums_ = std::move(*checksums);
  } else {
    problem(checksums.error().message);
  }
  auto history = read_history(transaction_, commit_of(state_));
  if (!history) return problem(history.error().message);
  history_ = std::move(*history);
  history_.erase(history_.begin());  // the state itself, which is compared in the end
}

/// Whether the commits of so many sequences as were read say what was read.
void ShardCheck::check_commits() {
  // Oldest first, as the records come. After a broken record no content can be rebuilt.
  while (all_sound_ && !history_.empty() && history_.back().sequences <= rebuilt_.sequences) {
    const Commit& commit = history_.back();
    if (commit.sequences != rebuilt_.sequences || commit.content != rebuilt_.content) {
      problem(fmt::format("dataset {}: its history: commit {} is not of its first {} sequences",
                          transaction_.environment().path().string(), commit.generation,
                          commit.sequences));
    }
    history_.pop_back();
  }
}

Result<Found> ShardCheck::read(std::uint64_t ordinal) const {
  const auto bytes = transaction_.get(Table::sequences, as_key(ordinal));
  if (!bytes) return bytes.error();
  if (!*bytes) return Error{ErrorCode::corrupt_record, "its record is missing"};
  // Its size is not to be trusted before the record agrees with it.
  std::optional<Result<RecordView>> in_map;
  if (!guarded([&] { in_map.emplace(RecordView::parse(schema_, **bytes)); })) {
    return transaction_.environment().fault();
  }
  if (!*in_map) return in_map->error();
  std::vector<std::byte> copy((*bytes)->size());
  if (!copy_from_map(copy, **bytes)) return transaction_.environment().fault();
  // Parsed again: the view into the map faults where the map does, the copy never.
  const auto record = RecordView::parse(schema_, copy);
  if (!record) return record.error();
  Found found;
  found.summary = {record_crc(copy), copy.size(), record->length()};
  found.key = record->key();
  found.columns = {record->length(), static_cast<std::uint32_t>(found.key.size())};
  for (const std::size_t field : independent_) {
    found.columns.push_back(record->field(field).length);
  }
  if (crc32c(record_crc_range(copy)) != found.summary.crc) {
    found.wrong = "its CRC-32C is wrong";
  } else if (record->ordinal().value != ordinal) {
    found.wrong = "its record is of another sequence";
  }
  for (std::size_t i = 0; i < schema_.fields.size() && found.wrong.empty(); ++i) {
    found.wrong = describe_wrong_category(schema_.fields[i], record->field(i).bytes);
  }
  return found;
}

Result<void> ShardCheck::check_key(std::uint64_t ordinal, const std::string& key) const {
  const auto value = transaction_.get(Table::keys, as_key(key));
  if (!value) return value.error();
  // A key that is missing, or of another size, leads to no sequence: not to this one either.
  std::uint64_t target = ~ordinal;
  if (*value && (*value)->size() == sizeof target) {
    std::array<std::byte, sizeof target> copy{};
    if (!copy_from_map(copy, **value)) return transaction_.environment().fault();
    std::memcpy(&target, copy.data(), sizeof target);
  }
  if (target == ordinal) return {};
  return Error{ErrorCode::corrupt_record, "its key does not lead to it"};
}

bool ShardCheck::matches_index(std::uint64_t ordinal, const Found& found) const {
  for (std::size_t i = 0; i < index_.size(); ++i) {
    // A column that could not be read is one problem, not one of each record.
    if (!index_[i].empty() && index_[i][ordinal] != found.columns[i]) return false;
  }
  return true;
}

void ShardCheck::check_record(std::uint64_t ordinal) {
  check_commits();
  // The map is opened without the kernel's readahead, for feeds read in the plan's order.
  if (ordinal + kAhead < state_.sequences) {
    const std::uint64_t later = ordinal + kAhead;
    if (const auto ahead = transaction_.get(Table::sequences, as_key(later)); ahead && *ahead) {
      prefetch(**ahead);
    }
  }
  const auto found = read(ordinal);
  if (!found || !found->wrong.empty()) {
    all_sound_ = false;
    if (!found) return broken(ordinal, {}, found.error().message);
    return broken(ordinal, found->key, found->wrong);
  }
  report_.bytes += found->summary.bytes;
  // Before key and index: the sums are those of the records, whatever else is wrong.
  extend(rebuilt_, found->summary);
  if (auto key = check_key(ordinal, found->key); !key) {
    broken(ordinal, found->key, key.error().message);
  } else if (!matches_index(ordinal, *found)) {
    broken(ordinal, found->key, "its lengths are not those of the length index");
  } else if (const auto crc = checksums_.of(ordinal); crc && *crc != found->summary.crc) {
    broken(ordinal, found->key, "its CRC-32C is not the one in the length index");
  }
}

void ShardCheck::check_totals() {
  for (const auto& [table, name] : {std::pair(Table::sequences, "entries of table sequences"),
                                    std::pair(Table::keys, "entries of table keys")}) {
    const auto entries = transaction_.entries(table);
    if (!entries)
      problem(entries.error().message);
    else
      compare(name, *entries, state_.sequences);
  }
  if (!all_sound_) return;  // the sums below would only say so again
  check_commits();
  compare("frames", rebuilt_.frames, state_.frames);
  compare("shortest length", rebuilt_.min_length, state_.min_length);
  compare("longest length", rebuilt_.max_length, state_.max_length);
  compare("content fingerprint", rebuilt_.content, state_.content);
}

struct PinnedMeta {
  Transaction transaction;
  Meta meta;
};

Result<std::vector<PinnedMeta>> pin(const std::vector<std::filesystem::path>& shards,
                                    Locking locking) {
  std::vector<PinnedMeta> pinned;
  for (const auto& path : shards) {
    auto environment = Environment::open(path, locking);
    if (!environment) return environment.error();
    auto transaction = Transaction::begin(std::move(*environment), Access::read);
    if (!transaction) return transaction.error();
    auto meta = read_meta(*transaction);
    if (!meta) return meta.error();
    pinned.push_back({std::move(*transaction), std::move(*meta)});
  }
  return pinned;
}

}  // namespace

Result<VerifyReport> verify_dataset(const std::vector<std::filesystem::path>& shards,
                                    const VerifyProgress& progress, Locking locking) {
  // What makes a list of shards a dataset is the catalog's to say.
  const auto dataset = Catalog().open(shards, VerifyRecords::once, locking);
  if (!dataset) return dataset.error();
  const auto pinned = pin(shards, locking);
  if (!pinned) return pinned.error();
  VerifyReport report;
  report.lock = (*dataset)->lock();
  for (const PinnedMeta& shard : *pinned) report.sequences += shard.meta.state.sequences;
  std::uint64_t checked = 0;
  for (const PinnedMeta& shard : *pinned) {
    ShardCheck check(shard.transaction, shard.meta, report);
    check.read_index();
    for (std::uint64_t i = 0; i < shard.meta.state.sequences; ++i) {
      check.check_record(i);
      if (progress && ++checked % kProgressEvery == 0) progress(checked, report.sequences);
    }
    check.check_totals();
    // Without a lock a writer may have caused all that looks broken: then there is no report.
    if (auto unchanged = shard.transaction.check_unchanged(); !unchanged) return unchanged.error();
  }
  if (progress) progress(report.sequences, report.sequences);
  return report;
}

}  // namespace batchwright
