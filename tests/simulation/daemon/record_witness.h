#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "daemon/delivery/feed/core/feed_core.h"
#include "formats/journal_records.h"
#include "tests/simulation/daemon/data.h"
#include "tests/simulation/world/seam.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

/// Sees what tickets, journal, ledger and programs say of each lease, and fails the run where they
/// do not agree.
class RecordWitness {
 public:
  RecordWitness(World& world, Data& data, std::string journal, std::string ledger)
      : world_(world), data_(data), journal_(std::move(journal)), ledger_(std::move(ledger)) {}

  /// A daemon goes on from the files. `cut`: they may have lost what was in them.
  void opened(bool cut);
  /// Records were written.
  void files_changed();
  /// Before the core is told.
  void released(const FeedCore& core, const Released& event);
  void claimed(const FeedCore& core, const SubscribeRequested& event);
  /// A ticket leaves.
  void ticket(const FeedCore& core, SessionId session, std::span<const std::byte> message);
  void check(const FeedCore& core) const;

  /// A program says that a batch of a queue is done.
  void completed(const Holding& batch);

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  ///< Epoch and index.

  /// What the journal says, as far as it was read.
  struct Journal {
    std::uint64_t file = 0;  ///< Its number: with each epoch there is another.
    std::uint64_t bytes = 0;
    std::uint64_t content = 0;  ///< Of the epoch's plan.
    std::uint64_t next_content = 0;
    std::uint64_t epoch = 0;
    std::map<LeaseNumber, Place> given;
    std::set<Place> done;
  };

  void read_journal();
  void read_ledger();
  void take_in(const JournalRecord& record);
  void note_done(const WorkQueue& queue, LeaseNumber lease, QueueOwner owner);
  void check_epoch(std::uint64_t content, std::uint64_t epoch) const;

  World& world_;
  Data& data_;
  const std::string journal_;  ///< Paths; empty: there is none.
  const std::string ledger_;
  Journal read_;
  std::uint64_t ledger_bytes_ = 0;
  std::set<LeaseNumber> in_ledger_;
  std::set<LeaseNumber> sent_;           ///< Leases of all tickets.
  std::map<LeaseNumber, Place> queued_;  ///< Those of a queue.
  std::set<LeaseNumber> completed_;      ///< By programs.
  std::set<Place> completed_places_;
  std::set<Place> set_aside_;
  std::set<Place> done_;  ///< As the daemon knows, and must not forget while it lives.
};

}  // namespace batchwright::simulation
