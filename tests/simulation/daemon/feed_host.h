#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/feed_core.h"
#include "daemon/delivery/feed/live/producer_area.h"
#include "daemon/delivery/feed/record_writer.h"
#include "tests/simulation/daemon/data.h"
#include "tests/simulation/daemon/disk.h"
#include "tests/simulation/daemon/live_witness.h"
#include "tests/simulation/daemon/record_witness.h"
#include "tests/simulation/daemon/slot_witness.h"
#include "tests/simulation/world/seam.h"
#include "tests/simulation/world/world.h"

namespace batchwright::simulation {

class Daemon;

/// What outlives a daemon: its configuration, the data, the disk, and what was seen of it.
struct Machine final : Onlooker {
  Machine(World& world, FeedSettings settings, std::uint32_t sequences, const std::string& folder);

  void mapped(const std::byte* mapping, int descriptor) override {
    slots.arena_mapped(mapping, descriptor);
  }
  void taken(const Holding& batch) override {
    check_content(batch);
    slots.taken(batch);
  }
  void let_go(const Holding& batch) override {
    check_content(batch);
    slots.let_go(batch);
  }
  void completed(const Holding& batch) override {
    if (!live) records.completed(batch);
  }
  std::uint64_t steps(std::uint64_t content, std::uint64_t epoch) override {
    if (live) return live->steps(content);
    return data.plan(*data.find(content), Epoch{epoch}).source->plan.steps();
  }

  void check_content(const Holding& batch) const {
    live ? live->check(batch) : slots.check_content(batch);
  }

  FeedSettings settings;
  Data data;
  Disk disk;
  SlotWitness slots;
  RecordWitness records;
  std::optional<LiveWitness> live;  ///< Empty: the feed has a dataset.
  bool data_away = false;           ///< Its folder is not there.
  bool power_lost = false;          ///< Since a journal was opened last.
  std::uint64_t feeds_lost = 0;     ///< With the daemon, or as they were replaced.
  unsigned plan_failures = 0;       ///< In a hundred.
};

/// A real FeedCore, and what drives it in place of `Feed`: a planner, an assembler and a thread of
/// files that take any time, in virtual time. What is live of it is in feed_host_live.cpp.
/// Lifetime: the daemon outlives it. It stays until the daemon ends, since work for it may be under
/// way.
class FeedHost {
 public:
  /// Errors: those of opening the files.
  static Result<std::unique_ptr<FeedHost>> open(World& world, Daemon& daemon, Machine& machine,
                                                ArenaNumber number);
  ~FeedHost();
  FeedHost(const FeedHost&) = delete;
  FeedHost& operator=(const FeedHost&) = delete;

  void tell(FeedEvent event);
  const FeedCore& core() const { return *core_; }
  const Arena* find_arena(ArenaNumber number) const;
  ArenaNumber arena_number() const { return core_->parts().scheduler.slots()->number; }
  // Of a live feed, as Feed has them.
  bool is_live() const { return core_->parts().live != nullptr; }
  wire::FeedInfoT info() const;
  void produce(const ClientInfo& client, const wire::Produce& request);
  void push(const ClientInfo& client, const wire::Push& push, std::span<const std::byte> frame);
  bool has_producer(const ProducerKey& key) const;
  const ProducerArea* find_area(SessionId session, ArenaNumber number) const {
    return areas_ ? areas_->find(session, number) : nullptr;
  }
  /// Its areas go. Whether the session's end concerns the feed's producers.
  bool forget_producers(SessionId session);

  /// Does at once what follows from what it was told.
  void turn();
  /// The daemon is killed: of what the files' thread was to write, part may be there.
  void die();

 private:
  FeedHost(World& world, Daemon& daemon, Machine& machine, RecordFiles files)
      : world_(world),
        daemon_(daemon),
        machine_(machine),
        times_(world.dice.below(4)),
        records_(std::move(files), [this](Disk::Work work) { write(std::move(work)); }) {}

  void carry_out(const Send& action);
  void carry_out(const SendBatch& action);
  void carry_out(const Assemble& action);
  void carry_out(const ReadAhead&) {}
  void carry_out(const MakePlan& action);
  void carry_out(const WriteRecords& action) { records_.put(action.records); }
  void carry_out(const SetTimer& action);
  void carry_out(const Poison& action);
  void carry_out(const LookAtData&) {}
  void carry_out(const Log& action) { action.note(log_); }
  void carry_out(const FreePlans&) {}
  void carry_out(const GrowSlots& action);
  void carry_out(const RecordSteps&) {}
  void carry_out(const Failed& action);
  static Result<std::unique_ptr<FeedHost>> open_live(World& world, Daemon& daemon, Machine& machine,
                                                     ArenaNumber number);
  static std::shared_ptr<SlotGeneration> make_slots(Machine& machine, ArenaNumber number,
                                                    std::size_t slot_bytes);
  void witness(const FeedEvent& event);
  void planned(const MakePlan& asked, std::uint64_t content);
  Result<AssembledBatch> build(const Assemble& job) const;
  void write(Disk::Work work);
  void write_next();
  void check();
  void mark() const;
  Duration assembly_time();

  World& world_;
  Daemon& daemon_;
  Machine& machine_;
  const std::uint32_t times_;  ///< How long things take: each run has its own way.
  EventLog log_;
  std::unique_ptr<FeedCore> core_;
  std::shared_ptr<LiveSource> steps_;  ///< Of a live feed, as the next.
  std::optional<ProducerAreas> areas_;
  bool turn_is_due_ = false;
  std::uint64_t content_ = 0;  ///< Of the newest data that an epoch was planned of.
  RecordWriter records_;
  std::deque<Disk::Work> writing_;
  std::map<FeedTimer, std::uint64_t> timers_;  ///< The latest setting of each is the one.
  std::uint64_t settings_of_timers_ = 0;
  SlotWitness::Sends sends_;
};

}  // namespace batchwright::simulation
