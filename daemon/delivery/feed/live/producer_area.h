#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "daemon/delivery/feed/live/live_requests.h"
#include "formats/formats.h"

namespace batchwright {

/// Memory that a producer writes its sequences to, and this process reads: a memfd, sealed against
/// growing and shrinking. Its bytes may change at any time. Threads: immutable.
class ProducerArea {
 public:
  /// `bytes`: whole pages. Nothing is taken of the machine's memory before it is written to.
  /// Errors: io_error, busy (descriptors or memory lack).
  static Result<std::shared_ptr<const ProducerArea>> create(std::uint64_t bytes);
  ProducerArea(Descriptor descriptor, const std::byte* start, std::size_t bytes)
      : descriptor_(std::move(descriptor)), start_(start), bytes_(bytes) {}
  ~ProducerArea();
  ProducerArea(const ProducerArea&) = delete;
  ProducerArea& operator=(const ProducerArea&) = delete;

  int descriptor() const { return descriptor_.get(); }
  std::span<const std::byte> bytes() const { return {start_, bytes_}; }

 private:
  Descriptor descriptor_;
  const std::byte* start_;
  std::size_t bytes_;
};

/// The areas that a feed has given to producers. One that its producer has left stays as long as
/// sequences in it do. Threads: one at a time.
class ProducerAreas {
 public:
  /// `feed`: whose arena numbers these are among. `most_bytes`: of all areas together.
  ProducerAreas(ArenaNumber feed, std::uint64_t most_bytes) : feed_(feed), left_(most_bytes) {}

  struct Given {
    ArenaNumber number;
    std::shared_ptr<const ProducerArea> area;
  };
  /// An area of `wanted` bytes, or fewer where they are not left; empty where none can be had.
  std::optional<Given> give(SessionId session, std::uint64_t wanted);
  /// Null: the session has no area with this number.
  const ProducerArea* find(SessionId session, ArenaNumber number) const;
  void forget(SessionId session);

 private:
  using Key = std::pair<SessionId, ArenaNumber>;

  ArenaNumber feed_;
  std::uint64_t left_;
  std::uint32_t last_ = 0;
  std::map<Key, std::shared_ptr<const ProducerArea>> areas_;
};

}  // namespace batchwright
