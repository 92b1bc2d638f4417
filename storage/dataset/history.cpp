#include "storage/dataset/history.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "storage/dataset/chunk_header.h"
#include "storage/dataset/reader.h"

namespace batchwright {
namespace {

constexpr std::size_t kCommitBytes = 24;
static_assert(sizeof(Commit) == kCommitBytes);

std::uint64_t chunk_of(const Commit& commit) { return commit.generation / kChunkCommits; }

/// Chunks are used in turn, so that the newest takes the place of the oldest.
std::string chunk_key(std::uint64_t chunk) {
  return "history/" + std::to_string(chunk % kHistoryChunks);
}

Error damaged(const Transaction& transaction, std::uint64_t chunk) {
  return {ErrorCode::corrupt_record,
          fmt::format("dataset {}: its {} is damaged", transaction.environment().path().string(),
                      chunk_key(chunk))};
}

std::vector<std::byte> encode_chunk(std::span<const Commit> commits) {
  std::vector<std::byte> bytes(kHeaderBytes + commits.size_bytes());
  const auto count = static_cast<std::uint32_t>(commits.size());
  std::memcpy(bytes.data() + kCrcEnd, &count, sizeof count);
  if (count != 0) std::memcpy(bytes.data() + kHeaderBytes, commits.data(), commits.size_bytes());
  const std::uint32_t crc = crc32c(std::span<const std::byte>(bytes).subspan(kCrcEnd));
  std::memcpy(bytes.data(), &crc, sizeof crc);
  return bytes;
}

/// Each commit has a content of its own, and more sequences than the one before.
bool follows(const Commit& later, const Commit& earlier) {
  return later.generation > earlier.generation && later.sequences > earlier.sequences &&
         later.content != earlier.content;
}

bool in_order(std::span<const Commit> commits) {
  const auto wrong = std::adjacent_find(
      commits.begin(), commits.end(),
      [](const Commit& earlier, const Commit& later) { return !follows(later, earlier); });
  return wrong == commits.end();
}

/// What is at the chunk's key, oldest first: it may be an older chunk.
Result<std::vector<Commit>> read_place(const Transaction& transaction, std::uint64_t chunk) {
  const auto found = transaction.get(Table::meta, as_key(chunk_key(chunk)));
  if (!found) return found.error();
  if (!*found) return std::vector<Commit>();
  std::array<std::byte, kHeaderBytes + kChunkCommits * kCommitBytes> bytes{};
  const std::size_t size = (*found)->size();
  // The size stands in a page of LMDB's, which has no checksum: bounded before it is believed.
  if (size < kHeaderBytes || size > bytes.size()) return damaged(transaction, chunk);
  if (!copy_from_map(std::span(bytes).first(size), **found)) {
    return transaction.environment().fault();
  }
  std::uint32_t crc = 0;
  std::uint32_t count = 0;
  std::memcpy(&crc, bytes.data(), sizeof crc);
  std::memcpy(&count, bytes.data() + kCrcEnd, sizeof count);
  const auto covered = std::span<const std::byte>(bytes).first(size).subspan(kCrcEnd);
  // The count decides how much is copied below, so it must agree with the size.
  if (size != kHeaderBytes + count * kCommitBytes || crc != crc32c(covered)) {
    return damaged(transaction, chunk);
  }
  std::vector<Commit> commits(count);
  if (count != 0) std::memcpy(commits.data(), bytes.data() + kHeaderBytes, count * kCommitBytes);
  if (!in_order(commits)) return damaged(transaction, chunk);
  return commits;
}

/// The commits of a chunk, oldest first; none when it is not there, or no longer.
Result<std::vector<Commit>> read_chunk(const Transaction& transaction, std::uint64_t chunk) {
  auto commits = read_place(transaction, chunk);
  if (commits) {
    // Its place may still hold the chunk of kHistoryChunks before, which is not the one asked for.
    std::erase_if(*commits, [chunk](const Commit& commit) { return chunk_of(commit) != chunk; });
  }
  return commits;
}

Result<void> enter(Transaction& transaction, const Commit& commit) {
  auto commits = read_chunk(transaction, chunk_of(commit));
  if (!commits) return commits.error();
  // Usual for the commit before: it was entered when it was made.
  if (!commits->empty() && commits->back() == commit) return {};
  if (!commits->empty() && !follows(commit, commits->back())) {
    return damaged(transaction, chunk_of(commit));
  }
  commits->push_back(commit);
  return transaction.put(Table::meta, as_key(chunk_key(chunk_of(commit))), encode_chunk(*commits),
                         Put::replace);
}

/// Tries combinations of commits, one a shard.
class Search {
 public:
  Search(std::span<const std::vector<Commit>> histories, std::uint64_t content)
      : histories_(histories), content_(content), chosen_(histories.size(), 0) {}

  /// All shards at their newest commit but one.
  bool one_behind() {
    for (std::size_t shard = 0; shard < histories_.size(); ++shard) {
      for (std::size_t i = 0; i < histories_[shard].size(); ++i) {
        chosen_[shard] = i;
        if (content_of_chosen() == content_) return true;
      }
      chosen_[shard] = 0;
    }
    return false;
  }

  /// Any, nearest first.
  bool several_behind() {
    const std::size_t most = furthest(0);
    // Being one commit behind in sum means one shard alone, which one_behind() has tried.
    for (std::size_t behind = 2; behind <= most && tried_ < kMostCombinations; ++behind) {
      if (distribute(0, behind)) return true;
    }
    return false;
  }

  std::vector<std::size_t> chosen() && { return std::move(chosen_); }

 private:
  std::uint64_t content_of_chosen() const {
    std::uint64_t content = histories_[0][chosen_[0]].content;
    for (std::size_t shard = 1; shard < histories_.size(); ++shard) {
      content = join_content(content, histories_[shard][chosen_[shard]].content);
    }
    return content;
  }

  /// Commits that `shard` and those after it can be behind in sum.
  std::size_t furthest(std::size_t shard) const {
    const auto rest = histories_.subspan(shard);
    return std::accumulate(
        rest.begin(), rest.end(), std::size_t{0},
        [](std::size_t sum, const std::vector<Commit>& each) { return sum + each.size() - 1; });
  }

  /// Shares out `behind` commits among `shard` and those after it.
  bool distribute(std::size_t shard, std::size_t behind) {
    const std::size_t others = furthest(shard + 1);
    const std::size_t most = std::min(behind, histories_[shard].size() - 1);
    // This shard takes at least what the ones after it cannot.
    for (std::size_t own = behind - std::min(behind, others); own <= most; ++own) {
      chosen_[shard] = own;
      if (shard + 1 < histories_.size()) {
        if (distribute(shard + 1, behind - own)) return true;
      } else {
        ++tried_;
        if (content_of_chosen() == content_) return true;
      }
      if (tried_ >= kMostCombinations) return false;
    }
    return false;
  }

  std::span<const std::vector<Commit>> histories_;
  std::uint64_t content_;
  std::vector<std::size_t> chosen_;
  std::size_t tried_ = 0;
};

}  // namespace

Commit commit_of(const DatasetState& state) {
  return {state.generation, state.sequences, state.content};
}

Result<void> remember(Transaction& transaction, const Commit& before, const Commit& after) {
  // A dataset without a history, of an older version, begins it with the commit that it is at.
  if (auto entered = enter(transaction, before); !entered) return entered;
  return enter(transaction, after);
}

Result<std::vector<Commit>> read_history(const Transaction& transaction, const Commit& current) {
  std::vector<Commit> history = {current};
  const std::uint64_t newest = chunk_of(current);
  // Chunks newest first; those of generations below 0 do not exist.
  for (std::uint64_t back = 0; back < std::min(kHistoryChunks, newest + 1); ++back) {
    const auto commits = read_chunk(transaction, newest - back);
    if (!commits) return commits.error();
    for (auto commit = commits->rbegin(); commit != commits->rend(); ++commit) {
      if (*commit == current) continue;  // it is in front already
      // What a commit says is how much is read for it, so it is compared with what there is.
      if (!follows(history.back(), *commit)) return damaged(transaction, newest - back);
      history.push_back(*commit);
    }
  }
  return history;
}

Result<std::optional<Commit>> find_commit(const Transaction& transaction,
                                          std::uint64_t generation) {
  const auto commits = read_chunk(transaction, generation / kChunkCommits);
  if (!commits) return commits.error();
  for (const Commit& commit : *commits) {
    if (commit.generation == generation) return std::optional(commit);
  }
  return std::optional<Commit>();
}

Result<bool> descends_from(const Transaction& transaction, const Commit& now, const Commit& then) {
  if (now == then) return true;
  if (!follows(now, then)) return false;
  const auto remembered = find_commit(transaction, then.generation);
  if (!remembered) return remembered.error();
  return !*remembered || **remembered == then;
}

std::optional<std::vector<std::size_t>> find_commits(std::span<const std::vector<Commit>> histories,
                                                     std::uint64_t content) {
  Search search(histories, content);
  if (search.one_behind() || search.several_behind()) return std::move(search).chosen();
  return std::nullopt;
}

}  // namespace batchwright
