#include "storage/dataset/reader.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "storage/dataset/history.h"
#include "storage/dataset/lmdb/environment.h"
#include "storage/dataset/lmdb/fault_guard.h"
#include "storage/dataset/snapshot.h"
#include "storage/dataset/state.h"

namespace batchwright {
namespace {

using Paths = std::vector<std::filesystem::path>;

/// How records are read.
struct Reading {
  VerifyRecords verify = VerifyRecords::once;
  Locking locking = Locking::on;
  Holding holding = Holding::lengths;
  friend bool operator==(const Reading&, const Reading&) = default;
};

/// An open shard, and what is known of it beyond any snapshot.
struct Shard {
  std::shared_ptr<Environment> environment;
  VerifiedRecords verified;
  std::optional<Commit> seen = {};  ///< The newest that a snapshot was of.
};

Result<void> check_same_fields(const Schema& schema, const Paths& shards, std::size_t shard,
                               const Schema& found) {
  const std::string difference = describe_field_difference(schema, found);
  if (difference.empty()) return {};
  return Error{ErrorCode::schema_mismatch,
               fmt::format("dataset {} differs from {}: {}", shards[shard].string(),
                           shards.front().string(), difference)};
}

bool shows(const PinnedSnapshot& snapshot, const std::vector<PinnedShard>& shards) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (snapshot.commit(i) != shards[i].commit) return false;
  }
  return true;
}

/// What was asked for, and what there is.
Error nothing_has(std::uint64_t content, const std::vector<std::vector<Commit>>& histories,
                  const Paths& paths) {
  std::uint64_t now = 0;
  std::uint64_t generation = 0;
  std::uint64_t sequences = 0;
  std::size_t earlier = 0;
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const Commit& newest = histories[i].front();
    now = i == 0 ? newest.content : join_content(now, newest.content);
    generation += newest.generation;
    sequences += newest.sequences;
    earlier += histories[i].size() - 1;
  }
  const std::string others = paths.size() == 1 ? "" : " and its other shards";
  return {ErrorCode::not_found,
          fmt::format(
              "dataset {}{} is at content {:016x} ({} sequences, generation {}); nothing in its "
              "history of {} earlier commits has content {:016x}",
              paths.front().string(), others, now, sequences, generation, earlier, content)};
}

MapLock least_lock(const std::vector<Shard>& shards) {
  MapLock least = MapLock::slot;
  // The enumerators go from the strongest to the weakest.
  for (const Shard& shard : shards) least = std::max(least, shard.environment->lock());
  return least;
}

/// The commits that each shard remembers. Errors: as read_history().
Result<std::vector<std::vector<Commit>>> histories_of(const std::vector<PinnedShard>& shards) {
  std::vector<std::vector<Commit>> histories;
  for (const PinnedShard& shard : shards) {
    auto history = read_history(shard.transaction, shard.commit);
    if (!history) return history.error();
    histories.push_back(std::move(*history));
  }
  return histories;
}

class ShardedDataset final : public Dataset {
 public:
  ShardedDataset(Paths paths, std::vector<Shard> shards, Schema schema, Reading reading)
      : paths_(std::move(paths)),
        schema_(std::move(schema)),
        reading_(reading),
        lock_(least_lock(shards)),
        shards_(std::move(shards)) {}

  const Paths& shards() const override { return paths_; }
  const Schema& schema() const override { return schema_; }
  MapLock lock() const override { return lock_; }
  Result<std::shared_ptr<const Snapshot>> snapshot() override;
  Result<std::shared_ptr<const Snapshot>> snapshot_at(std::uint64_t content) override;
  Result<std::vector<std::size_t>> earlier_commits() override;
  Result<std::shared_ptr<const Snapshot>> snapshot_behind(
      std::span<const std::size_t> commits) override;

 private:
  Result<std::vector<PinnedShard>> pin_shards() REQUIRES(mutex_);
  Result<PinnedShard> pin(std::size_t i) REQUIRES(mutex_);
  Result<void> go_back(std::vector<PinnedShard>& shards, std::uint64_t content) const;
  Result<std::shared_ptr<const Snapshot>> share(std::vector<PinnedShard> shards) REQUIRES(mutex_);

  const Paths paths_;
  const Schema schema_;
  const Reading reading_;
  const MapLock lock_;
  Mutex mutex_;
  std::vector<Shard> shards_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const PinnedSnapshot>> alive_
      GUARDED_BY(mutex_);  // given out, each of other commits
};

Result<std::vector<PinnedShard>> ShardedDataset::pin_shards() {
  std::vector<PinnedShard> pinned;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto shard = pin(i);
    if (!shard) return shard.error();
    pinned.push_back(std::move(*shard));
  }
  return pinned;
}

Result<PinnedShard> ShardedDataset::pin(std::size_t i) {
  Shard& shard = shards_[i];
  // A map goes on showing a file that was deleted, so nothing else would notice it.
  if (auto there = shard.environment->check_still_there(paths_[i]); !there) return there.error();
  auto transaction = Transaction::begin(shard.environment, Access::read);
  if (!transaction) return transaction.error();
  auto state = pin_state(*transaction);
  if (!state) return state.error();
  const Commit newest = commit_of(state->state);
  if (shard.seen) {
    const auto grown = descends_from(*transaction, newest, *shard.seen);
    if (grown && !*grown) return shard.environment->overwritten();
  }
  shard.seen = newest;
  std::optional<VerifiedRecords> verified;
  if (reading_.verify == VerifyRecords::once) {
    // Under mutex_, and before the copy: snapshots share the bits, but not the list of blocks.
    shard.verified.grow_to(state->state.sequences);
    verified = shard.verified;
  }
  return PinnedShard{std::move(*transaction), paths_[i], std::move(*state), newest,
                     std::move(verified)};
}

/// Leads the shards to the commits that have `content` together. Errors: as snapshot_at().
Result<void> ShardedDataset::go_back(std::vector<PinnedShard>& shards,
                                     std::uint64_t content) const {
  const auto histories = histories_of(shards);
  if (!histories) return histories.error();
  // Earlier commits are read through the newest transaction: they are prefixes of what it sees.
  const auto found = find_commits(*histories, content);
  if (!found) return nothing_has(content, *histories, paths_);
  for (std::size_t i = 0; i < shards.size(); ++i) shards[i].commit = (*histories)[i][(*found)[i]];
  return {};
}

/// A snapshot of these commits: the one that is there already, or a new one.
Result<std::shared_ptr<const Snapshot>> ShardedDataset::share(std::vector<PinnedShard> shards) {
  std::erase_if(alive_, [](const auto& each) { return each.expired(); });
  for (const auto& each : alive_) {
    // An unchanged dataset is read into memory once, however many feeds and epochs ask for it.
    if (auto snapshot = each.lock(); snapshot != nullptr && shows(*snapshot, shards)) {
      return std::shared_ptr<const Snapshot>(std::move(snapshot));
    }
  }
  auto pinned = PinnedSnapshot::pin(schema_, std::move(shards), reading_.verify, reading_.holding);
  if (!pinned) return pinned.error();
  alive_.emplace_back(*pinned);
  return std::shared_ptr<const Snapshot>(std::move(*pinned));
}

Result<std::shared_ptr<const Snapshot>> ShardedDataset::snapshot() {
  const MutexLock lock(mutex_);
  auto shards = pin_shards();
  if (!shards) return shards.error();
  return share(std::move(*shards));
}

Result<std::shared_ptr<const Snapshot>> ShardedDataset::snapshot_at(std::uint64_t content) {
  const MutexLock lock(mutex_);
  auto shards = pin_shards();
  if (!shards) return shards.error();
  if (auto gone = go_back(*shards, content); !gone) return gone.error();
  return share(std::move(*shards));
}

Result<std::vector<std::size_t>> ShardedDataset::earlier_commits() {
  const MutexLock lock(mutex_);
  const auto shards = pin_shards();
  if (!shards) return shards.error();
  const auto histories = histories_of(*shards);
  if (!histories) return histories.error();
  std::vector<std::size_t> earlier;
  for (const std::vector<Commit>& history : *histories) {
    // The first commit of all may be of the description alone.
    const bool is_empty = history.back().sequences == 0;
    earlier.push_back(history.size() - 1 - (is_empty && history.size() > 1 ? 1 : 0));
  }
  return earlier;
}

Result<std::shared_ptr<const Snapshot>> ShardedDataset::snapshot_behind(
    std::span<const std::size_t> commits) {
  const MutexLock lock(mutex_);
  auto shards = pin_shards();
  if (!shards) return shards.error();
  const auto histories = histories_of(*shards);
  if (!histories) return histories.error();
  for (std::size_t i = 0; i < std::min(commits.size(), shards->size()); ++i) {
    const std::vector<Commit>& history = (*histories)[i];
    (*shards)[i].commit = history[std::min(commits[i], history.size() - 1)];
  }
  return share(std::move(*shards));
}

Result<Schema> read_schema(const std::shared_ptr<Environment>& environment) {
  // Asked before anything is read: without tables a look-up has nothing to look into.
  const auto tables = environment->has_tables();
  if (!tables) return tables.error();
  if (!*tables) {
    return Error{ErrorCode::store_unavailable,
                 fmt::format("{} is an empty LMDB environment, not a Batchwright dataset",
                             environment->path().string())};
  }
  const auto transaction = Transaction::begin(environment, Access::read);
  if (!transaction) return transaction.error();
  auto meta = read_meta(*transaction);
  if (!meta) return meta.error();
  return std::move(meta->schema);
}

Result<std::shared_ptr<Dataset>> open_dataset(const Paths& paths, const Reading& reading) {
  std::vector<Shard> shards;
  std::set<const Environment*> seen;
  Schema schema;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto environment = Environment::open(paths[i], reading.locking);
    if (!environment) return environment.error();
    // Two paths may lead to one directory, by a link; both then have the same environment.
    if (!seen.insert(environment->get()).second) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("dataset {} appears twice in the list of shards", paths[i].string())};
    }
    auto found = read_schema(*environment);
    if (!found) return found.error();
    if (i == 0)
      schema = std::move(*found);
    else if (auto same = check_same_fields(schema, paths, i, *found); !same)
      return same.error();
    else
      append_categories(schema, *found);
    shards.push_back({std::move(*environment), {}});
  }
  return std::shared_ptr<Dataset>(
      std::make_shared<ShardedDataset>(paths, std::move(shards), std::move(schema), reading));
}

/// Which files the paths lead to now; another dataset may have taken a folder's place.
std::vector<std::pair<dev_t, ino_t>> files_at(const Paths& paths) {
  std::vector<std::pair<dev_t, ino_t>> files;
  for (const auto& path : paths) {
    struct stat status = {};
    // What is missing is like nothing that is open, so opening it says what is wrong.
    if (stat((path / "data.mdb").c_str(), &status) != 0) status = {};
    files.emplace_back(status.st_dev, status.st_ino);
  }
  return files;
}

Error unreadable_map() {
  return {ErrorCode::store_unavailable,
          "the dataset's memory map cannot be read: file truncated, or disk error"};
}

}  // namespace

/// Everything that opens the same dataset shares it: lengths and verified records are kept once.
struct Catalog::State {
  struct Entry {
    Paths paths;
    std::vector<std::pair<dev_t, ino_t>> files;
    Reading reading;
    std::weak_ptr<Dataset> dataset;
  };
  Mutex mutex;
  std::vector<Entry> entries GUARDED_BY(mutex);
  /// Held while a dataset of these paths opens: two feeds of one dataset that start together share
  /// it, and one whose disk does not answer keeps no other from being opened.
  std::map<Paths, std::weak_ptr<Mutex>> opening GUARDED_BY(mutex);

  std::shared_ptr<Mutex> mutex_of(const Paths& paths) {
    const MutexLock lock(mutex);
    std::erase_if(opening, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<Mutex>& known = opening[paths];
    auto of = known.lock();
    if (!of) known = of = std::make_shared<Mutex>();
    return of;
  }

  std::shared_ptr<Dataset> find(const Paths& paths, const Reading& reading,
                                const std::vector<std::pair<dev_t, ino_t>>& files) {
    const MutexLock lock(mutex);
    std::erase_if(entries, [](const auto& entry) { return entry.dataset.expired(); });
    for (const Entry& entry : entries) {
      if (entry.paths != paths || entry.reading != reading || entry.files != files) continue;
      if (auto dataset = entry.dataset.lock()) return dataset;
    }
    return nullptr;
  }
};

Catalog::Catalog() : state_(std::make_shared<State>()) {}
Catalog::~Catalog() = default;

Result<std::shared_ptr<Dataset>> Catalog::open(const std::vector<std::filesystem::path>& shards,
                                               VerifyRecords verify, Locking locking,
                                               Holding holding) {
  if (shards.empty()) return Error{ErrorCode::invalid_argument, "a dataset without a shard"};
  const auto opening = state_->mutex_of(shards);
  const MutexLock lock(*opening);
  const Reading reading{verify, locking, holding};
  auto files = files_at(shards);
  if (auto dataset = state_->find(shards, reading, files)) return dataset;
  auto dataset = open_dataset(shards, reading);
  if (!dataset) return dataset;
  const MutexLock entering(state_->mutex);
  state_->entries.push_back({shards, std::move(files), reading, *dataset});
  return dataset;
}

std::string lock_warning(const Dataset& dataset) {
  if (dataset.lock() != MapLock::none) return {};
  return fmt::format(
      "dataset {} is read without a lock: a writer's commits will end the reading; lock.mdb must "
      "be writable if it grows (under systemd: ReadWritePaths=)",
      dataset.shards().front().string());
}

Result<Examination> examine_dataset(const std::vector<std::filesystem::path>& shards,
                                    Locking locking) {
  const auto dataset = Catalog().open(shards, VerifyRecords::once, locking);
  if (!dataset) return dataset.error();
  const auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  Examination found{(*snapshot)->sequences(), (*dataset)->lock(), lock_warning(**dataset)};
  if (found.sequences == 0 && found.warning.empty()) {
    found.warning = fmt::format("dataset {} has no sequences", shards.front().string());
  }
  return found;
}

Result<void> copy_from_map(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  if (guarded([&] { std::memcpy(to.data(), from.data(), from.size()); })) return {};
  return unreadable_map();
}

Result<void> fields_from_map(const RecordView& record, std::span<FieldValue> values) {
  const bool read = guarded([&] {
    for (std::size_t f = 0; f < values.size(); ++f) values[f] = record.field(f);
  });
  if (read) return {};
  return unreadable_map();
}

}  // namespace batchwright
