#include "daemon/assembly/sources/row_cache.h"

#include <iterator>

namespace batchwright {
namespace {

std::size_t bytes_of(const std::vector<MadeField>& row) {
  std::size_t bytes = 0;
  for (const MadeField& field : row) bytes += field.bytes.capacity();
  return bytes;
}

}  // namespace

Result<CachedRow> RowCache::get(const Key& key, const Part& part,
                                const std::function<Result<CachedRow>()>& make) {
  MutexLock lock(mutex_);
  ++uses_;
  const auto [place, is_new] = rows_.try_emplace(key);
  if (!is_new) {
    const SharedEntry entry = place->second;  // stays while this waits, whatever others do
    entry->used = uses_;
    made_.wait(lock, [&entry] { return entry->row || entry->failed; });
    if (entry->row) {
      const CachedRow row = entry->row;
      if (entry->ends_with(part)) drop(key);
      return row;
    }
    lock.unlock();
    return make();
  }
  const SharedEntry entry = place->second = std::make_shared<Entry>();
  entry->used = uses_;
  lock.unlock();
  // Others wait for what comes of it, be it an exception.
  auto row = as_result(ErrorCode::busy, "", make);
  lock.lock();
  if (row) {
    entry->row = *row;
    const std::size_t bytes = bytes_of(**row);
    if (entry->ends_with(part) || !take_room(bytes)) {
      rows_.erase(key);
    } else {
      entry->bytes = bytes;
      bytes_ += bytes;
    }
  } else {
    entry->failed = true;
    rows_.erase(key);
  }
  made_.notify_all();
  return row;
}

/// Makes room where it must, by what no batch has asked for in a long time: the rest of such a row
/// came before, or no one takes it. Lanes ask for each of theirs in turn.
bool RowCache::take_room(std::size_t bytes) {
  if (budget_->take(bytes)) return true;
  const std::uint64_t idle = 4 * rows_.size() + 64;
  for (auto each = rows_.begin(); each != rows_.end();) {
    const auto next = std::next(each);
    if (each->second->row && each->second->bytes > 0 && each->second->used + idle < uses_) {
      drop(Key(each->first));  // a copy: its own goes
    }
    each = next;
  }
  return budget_->take(bytes);
}

void RowCache::drop(const Key& key) {
  const auto place = rows_.find(key);
  // Another may have dropped it first, and a third begun it again.
  if (place == rows_.end() || !place->second->row) return;
  bytes_ -= place->second->bytes;
  budget_->give_back(place->second->bytes);
  rows_.erase(place);
}

}  // namespace batchwright
