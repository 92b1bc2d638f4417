#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/assembly/memory_budget.h"
#include "formats/formats.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// A row that a recipe has made, all of it.
using CachedRow = std::shared_ptr<const std::vector<MadeField>>;

/// Rows of an epoch of which batches take parts (chunk, lanes): made once, kept until their last
/// part is taken.
///
/// Threads: any. One that asks for a row that another is making waits for it.
class RowCache {
 public:
  /// Of the rows that are kept, for all epochs of a feed. What finds no room is made again for its
  /// next part.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{128} << 20;

  explicit RowCache(std::uint64_t most_bytes = kMostBytes)
      : RowCache(std::make_shared<MemoryBudget>(most_bytes)) {}
  explicit RowCache(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  ~RowCache() { budget_->give_back(bytes_); }
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  /// A part of a row that is asked for. Chunks come in any order, so that their number tells when
  /// all were there; lanes take theirs in turn.
  struct Part {
    bool last = false;         ///< It ends the row.
    std::uint32_t chunks = 0;  ///< That the row has in this epoch; 0: it is not cut into chunks.
  };

  /// A sequence, how often it came before in the epoch where it is then made again, and the epoch
  /// where rows of several are kept.
  struct Key {
    std::uint64_t ordinal = 0;
    std::uint32_t use = 0;
    std::uint64_t epoch = 0;
    friend constexpr auto operator<=>(const Key&, const Key&) = default;
  };

  /// The row of a sequence, which `make` makes if it is not kept. Errors: those of `make`; each
  /// caller then tries by itself.
  Result<CachedRow> get(const Key& key, const Part& part,
                        const std::function<Result<CachedRow>()>& make);

 private:
  struct Entry {
    CachedRow row;  // null while it is made
    bool failed = false;
    std::size_t bytes = 0;
    std::uint64_t used = 0;   // of uses_, when it was asked for last
    std::uint32_t taken = 0;  // parts of it

    /// Counts a part, and says whether others follow.
    bool ends_with(const Part& part) {
      return ++taken >= part.chunks && (part.chunks != 0 || part.last);
    }
  };
  using SharedEntry = std::shared_ptr<Entry>;

  bool take_room(std::size_t bytes) REQUIRES(mutex_);
  void drop(const Key& key) REQUIRES(mutex_);

  const std::shared_ptr<MemoryBudget> budget_;
  Mutex mutex_;
  Condition made_;
  std::map<Key, SharedEntry> rows_ GUARDED_BY(mutex_);
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;  // taken of the budget
  std::uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace batchwright
