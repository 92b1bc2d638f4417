#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/snapshot.h"

namespace batchwright {
namespace {

/// As many reads as a disk serves at once without making others wait for long.
constexpr std::uint64_t kReaders = 8;
/// Look-ups on a page: more than one, since pages are not all as full as the average one.
constexpr std::uint64_t kLookUps = 2;

/// The look-ups that touch all leaves of one shard's tree, which its readers share.
struct Leaves {
  const Transaction& tree;
  std::uint64_t sequences;
  std::uint64_t step;  ///< From one ordinal that is looked up to the next.
  std::atomic<std::uint64_t> next = 0;
};

/// LMDB allows one thread at a time in a transaction, so each has its own. One that is newer has
/// the pages of the older one where they are the same.
Result<void> read_leaves(Leaves& leaves, const std::stop_token& stop) {
  const auto own = leaves.tree.another();
  if (!own) return own.error();  // such as: no reader slot is left
  while (!stop.stop_requested()) {
    const std::uint64_t ordinal = leaves.next.fetch_add(leaves.step);
    if (ordinal >= leaves.sequences) break;
    if (const auto got = own->get(Table::sequences, as_key(ordinal)); !got) return got.error();
  }
  return {};
}

/// What one cannot read, or has no memory for, is left to the others, and then to look-ups.
void read_on_threads(Leaves& leaves, std::uint64_t readers, const std::stop_token& stop) {
  const auto read = [&](const std::stop_token&) {
    static_cast<void>(
        as_result(ErrorCode::internal, "", [&] { return read_leaves(leaves, stop); }));
  };
  std::vector<std::jthread> threads;
  while (threads.size() < readers) {
    auto thread = start_thread(nullptr, read);
    if (!thread) return;  // those that there are do all of it; without any, look-ups wait
    threads.push_back(std::move(*thread));
  }
}

}  // namespace

void PinnedSnapshot::bring_in_tree(std::uint64_t most_bytes, const std::stop_token& stop) const {
  for (std::size_t i = 0; i < shards_.size() && !stop.stop_requested(); ++i) {
    const PinnedShard& shard = shards_[i];
    Result<std::uint64_t> pages = [&] {
      const MutexLock lock(mutexes_[i]);
      return shard.transaction.leaf_pages(Table::sequences);
    }();
    if (!pages || *pages == 0 || *pages > most_bytes / shard.page_bytes) continue;
    const std::uint64_t sequences = shard.commit.sequences;
    Leaves leaves{shard.transaction, sequences,
                  std::max<std::uint64_t>(1, sequences / (kLookUps * *pages))};
    read_on_threads(leaves, std::min(kReaders, *pages), stop);
  }
}

}  // namespace batchwright
