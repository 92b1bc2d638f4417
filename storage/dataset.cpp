#include "storage/dataset.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "storage/environment.h"
#include "storage/fault_guard.h"
#include "storage/snapshot.h"
#include "storage/state.h"

namespace batchwright {
namespace {

using Paths = std::vector<std::filesystem::path>;

/// An open shard, and what is known of it beyond any snapshot.
struct Shard {
  std::shared_ptr<Environment> environment;
  VerifiedRecords verified;
};

Result<void> check_same_fields(const Schema& schema, const Paths& shards, std::size_t shard,
                               const Schema& found) {
  const std::string difference = describe_field_difference(schema, found);
  if (difference.empty()) return {};
  return Error{ErrorCode::schema_mismatch, "dataset " + shards[shard].string() + " differs from " +
                                               shards.front().string() + ": " + difference};
}

class ShardedDataset final : public Dataset {
 public:
  ShardedDataset(Paths paths, std::vector<Shard> shards, Schema schema, VerifyRecords verify)
      : paths_(std::move(paths)),
        schema_(std::move(schema)),
        verify_(verify),
        shards_(std::move(shards)) {}

  const Paths& shards() const override { return paths_; }
  const Schema& schema() const override { return schema_; }
  Result<std::shared_ptr<const Snapshot>> snapshot() override;

 private:
  Result<std::vector<PinnedShard>> pin_shards();
  bool is_current(const PinnedSnapshot& snapshot, const std::vector<PinnedShard>& shards) const;

  const Paths paths_;
  const Schema schema_;
  const VerifyRecords verify_;
  std::mutex mutex_;  // guards all below
  std::vector<Shard> shards_;
  std::weak_ptr<const PinnedSnapshot> latest_;
};

Result<std::vector<PinnedShard>> ShardedDataset::pin_shards() {
  std::vector<PinnedShard> pinned;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (auto there = shards_[i].environment->check_still_there(); !there) return there.error();
    auto transaction = Transaction::begin(shards_[i].environment, Access::read);
    if (!transaction) return transaction.error();
    const auto state = read_state(*transaction);
    if (!state) return state.error();
    std::optional<VerifiedRecords> verified;
    if (verify_ == VerifyRecords::once) {
      shards_[i].verified.grow_to(state->sequences);
      verified = shards_[i].verified;
    }
    pinned.push_back({std::move(*transaction), *state, std::move(verified)});
  }
  return pinned;
}

bool ShardedDataset::is_current(const PinnedSnapshot& snapshot,
                                const std::vector<PinnedShard>& shards) const {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (snapshot.state(i) != shards[i].state) return false;
  }
  return true;
}

Result<std::shared_ptr<const Snapshot>> ShardedDataset::snapshot() {
  const std::lock_guard lock(mutex_);
  auto shards = pin_shards();
  if (!shards) return shards.error();
  if (auto latest = latest_.lock(); latest != nullptr && is_current(*latest, *shards)) {
    return std::shared_ptr<const Snapshot>(std::move(latest));
  }
  auto pinned = PinnedSnapshot::pin(schema_, std::move(*shards), verify_);
  if (!pinned) return pinned.error();
  latest_ = *pinned;
  return std::shared_ptr<const Snapshot>(std::move(*pinned));
}

Result<Schema> read_schema(const std::shared_ptr<Environment>& environment) {
  const auto tables = environment->has_tables();
  if (!tables) return tables.error();
  if (!*tables) {
    return Error{
        ErrorCode::store_unavailable,
        environment->path().string() + " is an empty LMDB environment, not a Batchwright dataset"};
  }
  const auto transaction = Transaction::begin(environment, Access::read);
  if (!transaction) return transaction.error();
  auto meta = read_meta(*transaction);
  if (!meta) return meta.error();
  return std::move(meta->schema);
}

Result<std::shared_ptr<Dataset>> open_dataset(const Paths& paths, VerifyRecords verify) {
  std::vector<Shard> shards;
  std::set<const Environment*> seen;
  Schema schema;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto environment = Environment::open(paths[i], Access::read);
    if (!environment) return environment.error();
    if (!seen.insert(environment->get()).second) {
      return Error{ErrorCode::invalid_argument,
                   "dataset " + paths[i].string() + " appears twice in the list of shards"};
    }
    auto found = read_schema(*environment);
    if (!found) return found.error();
    if (i == 0)
      schema = std::move(*found);
    else if (auto same = check_same_fields(schema, paths, i, *found); !same)
      return same.error();
    shards.push_back({std::move(*environment), {}});
  }
  return std::shared_ptr<Dataset>(
      std::make_shared<ShardedDataset>(paths, std::move(shards), std::move(schema), verify));
}

}  // namespace

/// Who opens what is open shares it: lengths and verified records are kept once.
struct Catalog::State {
  struct Entry {
    Paths paths;
    VerifyRecords verify;
    std::weak_ptr<Dataset> dataset;
  };
  std::mutex mutex;
  std::vector<Entry> entries;
};

Catalog::Catalog() : state_(std::make_shared<State>()) {}
Catalog::~Catalog() = default;

Result<std::shared_ptr<Dataset>> Catalog::open(const std::vector<std::filesystem::path>& shards,
                                               VerifyRecords verify) {
  if (shards.empty()) return Error{ErrorCode::invalid_argument, "a dataset without a shard"};
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->entries, [](const auto& entry) { return entry.dataset.expired(); });
  for (const State::Entry& entry : state_->entries) {
    if (entry.paths != shards || entry.verify != verify) continue;
    if (auto dataset = entry.dataset.lock()) return dataset;
  }
  auto dataset = open_dataset(shards, verify);
  if (dataset) state_->entries.push_back({shards, verify, *dataset});
  return dataset;
}

Result<void> copy_from_map(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  if (guarded([&] { std::memcpy(to.data(), from.data(), from.size()); })) return {};
  return Error{ErrorCode::store_unavailable,
               "the dataset's memory map cannot be read: file truncated, or disk error"};
}

}  // namespace batchwright
