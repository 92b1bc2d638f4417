#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/dataset/state.h"

// Which commits a dataset has had. Sequences are only ever appended, so an earlier commit is the
// first so many of them. Layout in FORMAT.md.

namespace batchwright {

/// One commit of one shard.
struct Commit {
  std::uint64_t generation = 0;
  std::uint64_t sequences = 0;
  std::uint64_t content = 0;
  friend bool operator==(const Commit&, const Commit&) = default;
};

/// The commit that a state was written by.
Commit commit_of(const DatasetState& state);

/// Commits that a dataset remembers; the oldest make room for new ones.
inline constexpr std::uint64_t kChunkCommits = 160;
inline constexpr std::uint64_t kHistoryChunks = 400;
inline constexpr std::uint64_t kMostCommits = kChunkCommits * kHistoryChunks;

/// Enters the commit `after`, and `before` where no commit was entered for it: datasets older than
/// the history have none. Errors: corrupt_record, and as Transaction::put().
Result<void> remember(Transaction& transaction, const Commit& before, const Commit& after);

/// The commits that are remembered, newest first, `current` always among them: each with fewer
/// sequences than the one after it. Errors: corrupt_record (a damaged chunk, or one that does not
/// agree with `current`), store_unavailable.
Result<std::vector<Commit>> read_history(const Transaction& transaction, const Commit& current);

/// The commit of this generation, if it is remembered. Errors: as read_history().
Result<std::optional<Commit>> find_commit(const Transaction& transaction, std::uint64_t generation);

/// Whether appending can have led from `then` to `now`, which `transaction` sees. A commit that is
/// not remembered is no objection. Errors: as read_history().
Result<bool> descends_from(const Transaction& transaction, const Commit& now, const Commit& then);

/// A place in the history of each shard, so that together they have `content`; empty when there are
/// none. First all are tried where no shard, or one alone, is behind; then the others by the number
/// of commits that they are behind in sum, up to kMostCombinations.
std::optional<std::vector<std::size_t>> find_commits(std::span<const std::vector<Commit>> histories,
                                                     std::uint64_t content);
inline constexpr std::size_t kMostCombinations = 100'000;

}  // namespace batchwright
