#include "storage/dataset/snapshot.h"

namespace batchwright {

/// Writers write to other pages than those of a transaction that is alive and has a lock, so what
/// lies where the state was is still the state, unless the file was written over.
Result<void> PinnedSnapshot::check_state(const PinnedShard& shard) {
  const auto same = is_as_read(shard.transaction, shard.state);
  if (!same) return same.error();
  if (*same) return {};
  // Without a lock a writer's commits come there, too.
  if (auto unchanged = shard.transaction.check_unchanged(); !unchanged) return unchanged;
  return shard.transaction.environment().overwritten();
}

DatasetStanding PinnedSnapshot::standing_of(const PinnedShard& shard) {
  Environment& environment = shard.transaction.environment();
  if (environment.was_overwritten()) {
    return {DataStanding::overwritten, environment.overwritten().message};
  }
  const auto same = check_state(shard);
  if (!same && same.error().code == ErrorCode::fingerprint_mismatch) {
    return {DataStanding::overwritten, same.error().message};
  }
  const std::string where = "dataset " + shard.path.string();
  switch (environment.file_at(shard.path)) {
    case Environment::FileAt::same: break;
    case Environment::FileAt::none:
      return {DataStanding::removed, where + " was removed while it was open"};
    case Environment::FileAt::another:
      return {DataStanding::replaced, where +
                                          " was replaced while it was open: its path leads to "
                                          "another data.mdb"};
  }
  // What cannot be read now, or no longer, is for those who read it.
  const auto now = shard.transaction.another();
  const auto state = now ? read_state(*now) : now.error();
  if (!state) return {};
  const auto grown = descends_from(*now, commit_of(*state), commit_of(shard.state.state));
  if (!grown || *grown) return {};
  return {DataStanding::overwritten, environment.overwritten().message};
}

DatasetStanding PinnedSnapshot::standing() const {
  DatasetStanding worst;
  for (const PinnedShard& shard : shards_) {
    DatasetStanding found = standing_of(shard);
    if (found.standing > worst.standing) worst = std::move(found);
  }
  return worst;
}

}  // namespace batchwright
