#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/assembly/slot_cache.h"
#include "daemon/planning/planning.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

class EpochSource;
class StageTimes;

/// A row that is to be read: the bytes of its record, of which a part of a sequence needs some.
struct WantedRow {
  MapBytes record;
  Row row;
  std::size_t bytes = 0;  ///< To be read.
  bool whole = true;      ///< All of the record.
};

/// A batch whose pages are asked for.
struct WantedBatch {
  BatchId id;
  /// Not owned: an epoch that is no longer served is not read.
  std::weak_ptr<const EpochSource> source;
  std::shared_ptr<StageTimes> times;  ///< May be null.
  std::vector<WantedRow> rows;
};

/// What one read asks for: neighbouring rows, or a stretch of a long one.
struct Read {
  std::string feed;
  std::weak_ptr<const EpochSource> source;
  std::shared_ptr<StageTimes> times;
  std::vector<WantedRow> rows;
  std::size_t bytes = 0;
};

/// What is to be read for a batch, by disk. May wait for the pages that look-ups go through.
/// Threads: any.
std::map<std::uint64_t, std::vector<WantedRow>> wanted_rows(const EpochSource& source,
                                                            BatchIndex index);

/// What is to be read of one disk, and in which order: among the feeds, the one goes first for
/// which least was read; a feed's batches go in the order in which they are due, as many at a time
/// as fill the window, and the rows of these in the order of the file, so that heads move one way
/// and neighbours are read as one.
///
/// A feed may be ahead of assembly by no more than a limit, or what is read first would be dropped
/// from memory before it is used. A feed that had nothing to read gets no credit for it.
/// Threads: one at a time.
class ReadQueue {
 public:
  /// Batches of a feed that are remembered; the oldest is dropped.
  static constexpr std::size_t kCapacity = 256;
  /// Long rows are read in stretches of this, so that a read takes about as long as any other.
  static constexpr std::size_t kStretchBytes = 256 << 10;
  /// Short rows are read together until they are as long as this.
  static constexpr std::size_t kLeastReadBytes = 64 << 10;

  /// Sets how far a feed may be ahead of assembly, and how much is put in the file's order.
  void set_limits(std::size_t ahead_bytes, std::size_t window_bytes);

  void put(const std::string& feed, WantedBatch batch);
  /// The next read; empty when nothing may be read.
  std::optional<Read> take();
  /// The batch is assembled: what was not read of it is not needed any more.
  void used(const std::string& feed, const BatchId& id);

  /// Whether there is nothing to read.
  bool empty() const;
  /// Whether it remembers no batch at all.
  bool is_idle() const;
  /// Whether a batch that is still to be assembled needs the record.
  bool wants(MapBytes record) const { return wanted_.contains(record.data()); }
  /// Bytes read for batches that are not assembled yet.
  std::size_t ahead_bytes() const;

 private:
  struct Entry {
    WantedBatch batch;
    bool on_shelf = false;
    std::size_t read_bytes = 0;
  };
  /// A row, or a stretch of it, that waits on a shelf.
  struct Item {
    BatchId id;
    WantedRow row;
  };
  struct Lane {
    std::deque<Entry> entries;  ///< In the order of put().
    std::deque<Item> shelf;     ///< In the order of the file.
    std::uint64_t served_bytes = 0;
    std::size_t ahead_bytes = 0;

    bool has_work() const;
  };

  Lane* next_lane(std::string& feed);
  void fill_shelf(Lane& lane) const;
  void drop_gone(Lane& lane);
  void forget(Lane& lane, std::deque<Entry>::iterator entry);
  std::uint64_t least_served() const;

  std::size_t ahead_limit_ = std::size_t{64} << 20;
  std::size_t shelf_bytes_ = std::size_t{2} << 20;
  std::map<std::string, Lane> lanes_;
  std::unordered_map<const std::byte*, unsigned> wanted_;  // records, by their first byte
};

}  // namespace batchwright
