#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/recipe/recipe.h"

namespace batchwright {

/// A row that a recipe has made, all of it.
using KeptRow = std::shared_ptr<const std::vector<MadeField>>;

/// Rows of an epoch of which batches take parts (chunk, lanes): made once, kept until their last
/// part is taken.
///
/// Threads: any. One that asks for a row that another is making waits for it.
class KeptRows {
 public:
  /// Bytes of the rows that are kept. What finds no room is made again for its next part.
  static constexpr std::size_t kMostBytes = std::size_t{128} << 20;

  explicit KeptRows(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// A sequence, and how often it came before in the epoch where it is then made anew.
  using Key = std::pair<std::uint64_t, std::uint32_t>;

  /// The row of a sequence, which `make` makes if it is not kept; `last`: no other part of it
  /// follows. Errors: those of `make`; each caller then tries by itself.
  Result<KeptRow> get(const Key& key, bool last, const std::function<Result<KeptRow>()>& make);

 private:
  struct Entry {
    KeptRow row;  // null while it is made
    bool failed = false;
    std::size_t bytes = 0;
    std::uint64_t used = 0;  // of uses_, when it was asked for last
  };
  using SharedEntry = std::shared_ptr<Entry>;

  bool has_room(std::size_t bytes);
  void drop(const Key& key);

  const std::size_t most_bytes_;
  std::mutex mutex_;  // guards all below
  std::condition_variable made_;
  std::map<Key, SharedEntry> rows_;
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace batchwright
