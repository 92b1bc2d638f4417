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
  /// After the core was told, and after each turn.
  void check(const FeedCore& core);
  /// A worker is gone: what it did and the journal does not say may be given again.
  void worker_ended();
  /// From here on a worker may come back too late, and then what it did is given again.
  void expect_late_workers();

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

  /// What programs say that they did.
  struct Completed {
    std::set<LeaseNumber> leases;
    std::set<Place> places;
    std::set<Place> promised;  ///< Never given again.
    bool keeps_promises = true;
  };
  /// What the daemon knows, and must not forget while it lives.
  struct Noted {
    std::set<Place> done;
    std::set<Place> latest;                         ///< By the latest event.
    std::multimap<std::uint64_t, Place> by_record;  ///< The record after which its own comes.
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
  std::map<LeaseNumber, SessionId> sent_;  ///< Leases of all tickets, and to whom.
  std::map<LeaseNumber, Place> queued_;    ///< Those of a queue.
  std::set<Place> set_aside_;
  Completed completed_;
  Noted noted_;
};

}  // namespace batchwright::simulation
