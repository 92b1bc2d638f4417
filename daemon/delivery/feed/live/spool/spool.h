#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/live/spool_turn.h"
#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// The folder that lets a live feed outlive the daemon: the sequences that were accepted, the steps
/// that are kept, and all that decides what comes next. Layout and what survives what: README.md.
///
/// Threads: one at a time; it may go from thread to thread.
class Spool {
 public:
  struct Opened {
    std::unique_ptr<Spool> spool;
    SpooledFeed feed;
    WorkQueue queue;  ///< What is out is kept for its owners.
    LeaseNumber next_lease{1};
  };
  /// Opens the folder, or begins it. Sequences are read into memory, and each is checked. Blocks on
  /// the disk. Errors: those of KeyedStore::open() and read(); bad_configuration (it is another
  /// feed's, or of other fields, world, groups or lanes); unsupported_version.
  /// A feed that is new takes `new_incarnation`, and so does one that may lack what it accepted:
  /// after a loss of power without sync.
  static Result<Opened> open(const FeedSettings& settings, std::uint64_t new_incarnation);

  /// Notes records of a queue, and turns, in order. Errors: those of KeyedStore::write(); then
  /// nothing more can be noted.
  Result<void> write(std::span<const Record> records);

  const std::string& name() const { return store_->name(); }  ///< "spool PATH".

 private:
  using Batch = KeyedStore::Batch;

  Spool(std::unique_ptr<KeyedStore> store, const FeedSettings& settings);
  Result<void> begin(const FeedSettings& settings, std::uint64_t new_incarnation, Opened& opened);
  Result<void> empty(SpooledFeed& feed);
  Result<void> read_table(std::size_t table, const KeyedStore::Take& take) const;
  Result<void> read_head();
  Result<void> take_head(std::span<const std::byte> value);
  Result<void> take_queue(std::span<const std::byte> value);
  Result<void> take_lanes(std::span<const std::byte> value);
  Result<void> check(const FeedSettings& settings) const;
  Result<void> read(SpooledFeed& feed);
  Result<void> read_producers(SpooledFeed& feed);
  Result<void> read_sequences(SpooledFeed& feed) const;
  Result<void> read_marks(SpooledFeed& feed) const;
  Result<void> read_steps(SpooledFeed& feed) const;
  Result<void> settle(SpooledFeed& feed);
  Result<void> settle_step(const SpooledStep& step, std::vector<bool>& used,
                           SpooledFeed& feed) const;
  Result<void> drop_useless(const std::vector<bool>& used, SpooledFeed& feed);
  Result<void> read_groups(SpooledFeed& feed);

  void note(const SpoolTurn& turn, Batch& batch);
  void note_sequence(const SpooledSequence& spooled, Batch& batch) const;
  void note_head(Batch& batch) const;
  void note_lanes(Batch& batch) const;
  void note_queue(Batch& batch) const;

  std::unique_ptr<KeyedStore> store_;
  const Schema schema_;
  wire::SpoolHeadT head_;
  WorkQueue queue_;                         ///< As the records have it.
  std::vector<LivePoolState::Lane> lanes_;  ///< Those that are busy, as the spool has them.
  std::uint64_t group_changes_ = 0;
  std::map<ProducerId, std::uint64_t> first_chunk_;  ///< Of outcomes that are kept.
};

}  // namespace batchwright
