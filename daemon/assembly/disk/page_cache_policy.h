#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace batchwright {

class Snapshot;

/// Which records stay in memory behind the plan, where the datasets are larger than the memory that
/// is left for them.
///
/// An epoch needs each sequence once, and a random order needs those that were used last no sooner
/// than those that were used first. The kernel drops what was used longest ago, so that an epoch
/// finds next to nothing of what the epoch before it has read. Here what was read first stays, as
/// much as there is room for, and the rest is given back right behind its batch. So each epoch
/// finds the same share in memory, and what is read ahead of assembly pushes out nothing. Cost: a
/// bit a sequence. Threads: one at a time.
class PageCachePolicy {
 public:
  /// Of the memory, so that the kernel never has to look for pages to drop: what it would find is
  /// read ahead, and needed soon.
  static constexpr double kKeptShare = 5.0 / 8;
  static constexpr double kAheadShare = 1.0 / 8;

  /// Bytes that the page cache may take.
  void set_room(std::size_t bytes) { room_ = bytes; }
  bool has(const Snapshot* snapshot) const;
  /// A dataset that is read, and its files' bytes.
  void add(const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t file_bytes,
           std::uint64_t sequences);

  /// Whether the datasets do not fit.
  bool is_short() const { return dataset_bytes() > kept_limit(); }
  /// Bytes that may be read before they are needed.
  std::size_t ahead_limit() const {
    return static_cast<std::size_t>(static_cast<double>(room_) * kAheadShare);
  }
  /// A record has been used. Whether it stays in memory; always the same while it does.
  bool stays(const Snapshot* snapshot, std::uint64_t ordinal, std::size_t bytes);

  std::size_t kept_bytes() const;

 private:
  struct Kept {
    std::weak_ptr<const Snapshot> snapshot;
    std::uint64_t file_bytes = 0;
    std::size_t bytes = 0;
    std::vector<bool> records;
  };
  std::size_t kept_limit() const {
    return static_cast<std::size_t>(static_cast<double>(room_) * kKeptShare);
  }
  std::uint64_t dataset_bytes() const;

  std::size_t room_ = 0;
  std::map<const Snapshot*, Kept> datasets_;
};

}  // namespace batchwright
