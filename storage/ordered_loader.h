#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The primary field of one file.
struct Features {
  std::vector<std::byte> bytes;
  std::uint32_t length = 0;  ///< Frames.
  double seconds = 0;        ///< Of sound; 0 where there is none.
};

/// Loads items 0, 1, ... on threads of its own and hands them out in that order.
///
/// What is loaded and not handed out yet is bounded: in items, and in bytes up to one item a
/// thread beyond the bound. A thread that would pass a bound waits.
/// Threads: next() and the rest by the owner. `load` runs on this object's threads, several at
/// once, and what it throws comes out of next() as an error.
class OrderedLoader {
 public:
  using Load = std::function<Result<Features>(std::size_t)>;

  OrderedLoader(std::size_t items, std::size_t threads, Load load);
  ~OrderedLoader();  ///< Waits for the items that are being loaded.
  OrderedLoader(const OrderedLoader&) = delete;
  OrderedLoader& operator=(const OrderedLoader&) = delete;

  /// The next item. To be called at most `items` times.
  Result<Features> next();

 private:
  void work();
  bool may_begin() const;

  const std::size_t items_;
  const Load load_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable loaded_;
  std::condition_variable room_;
  std::vector<std::optional<Result<Features>>> window_;  // of item i: window_[i % size]
  std::size_t begun_ = 0;
  std::size_t handed_out_ = 0;
  std::size_t held_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace batchwright
