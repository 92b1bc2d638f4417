#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/feed_core.h"
#include "daemon/stats/stats.h"

namespace batchwright::test {

/// A FeedCore that is driven by events alone: its clock, planner, assembler and files are here, and
/// nothing happens on another thread. Ten batches of four sequences an epoch where nothing else is
/// said; a batch takes 100 us to assemble.
class VirtualFeed {
 public:
  using Time = FeedCore::Time;

  explicit VirtualFeed(FeedSettings settings, std::uint64_t sequences = 40);
  VirtualFeed(const VirtualFeed&) = delete;
  VirtualFeed& operator=(const VirtualFeed&) = delete;

  /// One thing that is due: what the core asked for, or the next timer until `deadline`. False when
  /// there is none.
  bool step(Time deadline);
  /// Until `done` or so long, by its own clock. Whether it is.
  template <class Done>
  bool eventually(Done done, Time::duration most = std::chrono::seconds(10)) {
    const Time deadline = now_ + most;
    while (!done()) {
      if (!step(deadline)) return done();
    }
    return true;
  }

  void tell(FeedEvent event);
  FeedCore& core() { return *core_; }
  std::uint64_t count(FeedCounter counter) const { return core_->counters().get(counter); }
  EventLog& log() { return log_; }
  Time now() const { return now_; }
  /// What was sent to a session and is not received yet.
  std::deque<ControlMessage>& sent_to(SessionId session) { return sent_[session]; }
  SessionId new_session() { return SessionId{++last_session_}; }

 private:
  static constexpr std::chrono::microseconds kAssembly{100};
  static constexpr std::chrono::microseconds kTurn{10};

  PlannedEpoch plan(Epoch epoch) const;
  bool answer();
  std::map<FeedTimer, Time>::iterator next_timer();
  void carry_out(const Send& action);
  void carry_out(const SendBatch& action);
  void carry_out(const Assemble& action) { assembling_.push_back({now_ + kAssembly, action}); }
  void carry_out(const ReadAhead&) {}
  void carry_out(const MakePlan& action) { planning_.push_back(action.epoch); }
  void carry_out(const WriteRecords& action) { writing_.push_back(action.records.size()); }
  void carry_out(const SetTimer& action);
  void carry_out(const Poison& action) { tell(SlotPoisoned{action.slot}); }
  void carry_out(const LookAtData&) {}
  void carry_out(const Log& action) { action.note(log_); }
  void carry_out(const FreePlans&) {}
  void carry_out(const GrowSlots&) {}
  void carry_out(const RecordSteps&) {}
  void carry_out(const Failed&) { tell(NotReplaced{}); }
  void deliver(SessionId session, const flatbuffers::DetachedBuffer& message);

  FeedSettings settings_;
  std::vector<std::uint32_t> lengths_;
  Time now_{std::chrono::hours(1)};
  EventLog log_;
  std::unique_ptr<FeedCore> core_;
  std::deque<std::pair<Time, Assemble>> assembling_;  ///< With the time when each is done.
  std::deque<Epoch> planning_;
  std::deque<std::size_t> writing_;  ///< Records.
  std::uint64_t written_ = 0;
  std::map<FeedTimer, Time> timers_;
  std::map<SessionId, std::deque<ControlMessage>> sent_;
  std::uint64_t last_session_ = 0;
};

/// A client of a VirtualFeed. It says what a RawClient says.
class VirtualClient {
 public:
  explicit VirtualClient(VirtualFeed& feed, std::string program = "raw", Abilities abilities = {},
                         std::uint64_t token = 0);

  /// Subscribes, and says that the program waits. A subscription that is refused is answered by
  /// Refused.
  void send(wire::SubscribeT subscribe);
  /// Subscribes, and takes no batch.
  void look_on(wire::SubscribeT subscribe);
  void send(const wire::ReleaseT& release);
  void send(const wire::AskT& question);
  void say_waiting(std::uint32_t subscription = 1, std::uint32_t holds = 0);
  /// From now on its batches travel after their tickets.
  void take_messages() { info_.inline_batches = true; }
  /// Its process dies.
  void die();

  /// The next message; empty when none comes within ten seconds of the feed's clock.
  std::optional<ControlMessage> receive();
  std::optional<ControlMessage> receive_news() { return receive(); }
  /// Nothing comes for half a second of that.
  bool silent();

 private:
  std::optional<ControlMessage> receive_within(VirtualFeed::Time::duration most);

  VirtualFeed& feed_;
  ClientInfo info_;
};

/// Subscribes; false when that is refused.
bool join(VirtualClient& client, wire::SubscribeT subscribe);

}  // namespace batchwright::test
