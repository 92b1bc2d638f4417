#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The value of one field.
struct LoadedField {
  std::vector<std::byte> bytes;
  std::uint32_t length = 0;  ///< Frames; 1 of a scalar.
};

/// What a report should say of a sequence that was taken.
struct Remark {
  std::string what;   ///< The same text for all sequences that it is said of.
  std::string where;  ///< The place in its source, for the first of them.
};

/// The contents of one file, or of one entry of a table.
struct Loaded {
  std::vector<LoadedField> fields;
  double seconds = 0;         ///< Seconds of audio; 0 where there is none.
  std::uint64_t clipped = 0;  ///< Samples of audio beyond what their type holds.
  bool cancelled = false;     ///< Channels of audio are nearly silent in their mean, and not alone.
  bool lacks_begin = false;   ///< Audio that was cut out of a longer MP3, with what that lost.
  std::vector<Remark> remarks = {};
};

/// Loads items 0, 1, ... on threads of its own and hands them out in that order.
///
/// What is being loaded, and loaded and not handed out yet, is bounded: in items, and in bytes as
/// far as `cost` knows them before. A thread that would pass a bound waits, but the item that is
/// due may always begin, so that one above the bound is loaded alone.
/// Threads: next() and the rest by the owner. `load` runs on this object's threads, several at
/// once, and what it throws comes out of next() as an error. So does `cost`, which may be empty;
/// where it throws, it is 0.
class OrderedLoader {
 public:
  using Load = std::function<Result<Loaded>(std::size_t)>;
  /// Bytes of memory that an item takes while it is loaded.
  using Cost = std::function<std::uint64_t(std::size_t)>;

  /// Bytes that the items which are not handed out yet may take.
  static constexpr std::uint64_t kHeldBytes = std::uint64_t{128} << 20;

  OrderedLoader(std::size_t items, std::size_t threads, Load load, Cost cost = {},
                std::uint64_t held_bytes = kHeldBytes);
  ~OrderedLoader();  ///< Waits for the items that are being loaded.
  OrderedLoader(const OrderedLoader&) = delete;
  OrderedLoader& operator=(const OrderedLoader&) = delete;

  /// The next item. To be called at most `items` times.
  Result<Loaded> next();

 private:
  void work();
  bool may_begin() const REQUIRES(mutex_);
  bool has_room(std::size_t item, std::uint64_t bytes) const REQUIRES(mutex_);

  const std::size_t items_;
  const Load load_;
  const Cost cost_;
  const std::uint64_t most_bytes_;
  Mutex mutex_;
  Condition loaded_;
  Condition room_;
  std::vector<std::optional<Result<Loaded>>> window_
      GUARDED_BY(mutex_);  // of item i: window_[i % size]
  std::size_t begun_ GUARDED_BY(mutex_) = 0;
  std::size_t handed_out_ GUARDED_BY(mutex_) = 0;
  std::uint64_t held_bytes_ GUARDED_BY(mutex_) =
      0;  // of items that are loaded, and reserved for those in work
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace batchwright
