#pragma once

#include <flatbuffers/flatbuffers.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/feed_settings.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/live/kept_sequences.h"
#include "daemon/delivery/feed/live/live_requests.h"
#include "daemon/delivery/feed/live/live_source.h"
#include "daemon/delivery/feed/live/live_trainers.h"
#include "daemon/delivery/feed/live/producer.h"
#include "daemon/delivery/feed/live/record/record_service.h"
#include "daemon/delivery/feed/live/spool/spool_notes.h"
#include "daemon/delivery/feed/live/step_gate.h"
#include "daemon/live/live.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// What a live feed does with its producers, and which steps its trainers get. The pool decides;
/// this gives its producers and trainers numbers, keeps the sequences that it decides about, makes
/// steps of them, and has the answers sent.
///
/// Bytes of a sequence are kept while the pool has it, and while a step with it is kept.
/// Threads: one at a time.
class LiveService {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Message {
    SessionId to;
    flatbuffers::DetachedBuffer bytes;
  };

  /// Time counts from `began`. `source` gets the steps. `spooled`: what the feed's spool had; null
  /// where it has none.
  LiveService(const FeedSettings& settings, std::uint64_t incarnation,
              std::shared_ptr<LiveSource> source, Time began, const SpooledFeed* spooled = nullptr);
  /// What is delivered goes to a record, which has so many sequences.
  void record_behind(std::uint64_t sequences) { record_.emplace(sequences, incarnation_); }
  LiveService(const LiveService&) = delete;
  LiveService& operator=(const LiveService&) = delete;

  // Producers, and what any client may ask.

  void on(const ClientInfo& client, LiveRequest request, Time now);
  /// The session's producers go. What is accepted stays.
  void session_ended(SessionId session, Time now);
  bool has_session(SessionId session) const;
  void time_passed(Time now);
  /// Its pool has these limits from now on; what waits for it is judged again.
  void adjust(const LiveLimits& limits, Time now);
  /// When time_passed() is due; empty: only after another call.
  std::optional<Time> next_deadline() const;
  /// What is to be sent, and was not taken before.
  std::vector<Message> take_messages();

  /// A feed that has failed, or is replaced: each producer is told.
  void refuse_all(const Error& why);

  // Trainers.

  /// A trainer has room for this step, or waits for it.
  void take(const TrainerKey& trainer, Step step, bool waits, Time now);
  /// It has released all steps before this one.
  void released(const TrainerKey& trainer, Step step, Time now);
  void left(const TrainerKey& trainer, Time now);
  /// No trainer asks for steps before this one. Where one that is far behind does, its steps are
  /// kept up to the bytes of the pool; those from `queued` on whatever their bytes are, since the
  /// queue gives each of its batches to some worker.
  /// Behind a mark steps are kept as well, as far as they leave room for those that follow.
  void keep_from(Step step, std::optional<Step> queued = {});
  /// The first step that can still be assembled; and the first of those that are kept for more than
  /// a mark.
  Step first_kept() const { return Step{gate_.source().first_kept()}; }
  /// Steps that were cut, with those that are held back.
  std::uint64_t steps_cut() const { return pool_.steps(); }
  Step first_asked_for() const { return std::max(first_kept(), trainers_.asked_from()); }
  /// Whether there are more steps, or the feed has ended, since this was asked last.
  bool take_news() { return gate_.take_news(); }

  bool is_spooled() const { return spool_.has_value(); }
  /// What is to be written to the spool, and was not taken before. Messages that were made by now
  /// may be sent once it is written.
  std::optional<SpoolTurn> take_turn();

  bool is_recorded() const { return record_.has_value(); }
  /// Whether a step is held back until more of those before it are recorded.
  bool waits_for_record() const { return gate_.is_waiting_for_record(); }
  /// A batch of this step is handed out.
  void delivered(Step step);
  /// What is to be written to the record, and was not taken before.
  std::vector<RecordedStep> take_steps();
  /// The record has the steps up to this one, counted from 1 in the order in which they were taken.
  void recorded(std::uint64_t upto);

  /// Slots have so many bytes from now on. A step with a larger batch is held back until then.
  void set_slot_bytes(std::size_t bytes) { gate_.set_slot_bytes(bytes); }
  /// What slots have to have for the steps that are held back; 0: none is.
  std::size_t wanted_slot_bytes() const { return gate_.wanted_slot_bytes(); }

  /// Why there is no step, for people.
  std::string reason_to_wait(Time now) const;
  const ProducerTable& producers() const { return producers_; }
  /// How all of it stands; the list of producers only if it is asked for.
  LiveStatus status(Time now, bool with_producers) const;

 private:
  /// A client that waits for a version.
  struct VersionWait {
    SessionId session;
    std::uint32_t question = 0;
    std::uint64_t above = 0;
    std::optional<std::uint64_t> until_ms;
  };
  /// What it says of itself in status().
  struct Seen {
    LiveCounts counts;
    std::optional<std::uint64_t> pushed_ms;    ///< When a sequence was accepted last.
    std::optional<std::uint64_t> advanced_ms;  ///< When a version was announced last.
  };
  // live_service.cpp
  void handle(const ClientInfo& client, const ProduceAsked& asked);
  void handle(const ClientInfo& client, PushAsked asked);
  void handle(const ClientInfo& client, const wire::ClaimT& claim);
  void handle(const ClientInfo& client, const wire::AbandonT& abandon);
  void handle(const ClientInfo& client, const wire::CloseProducerT& close);
  void handle(const ClientInfo& client, const wire::ListOutcomesT& question);
  void handle(const ClientInfo& client, const wire::AdvanceT& advance);
  void handle(const ClientInfo& client, const wire::AwaitVersionT& question);
  void handle(const ClientInfo& client, const wire::EndFeedT& request);
  void handle(const ClientInfo& client, const wire::KeepFromT& mark);
  void end();
  LiveProducer* producer_of(const ClientInfo& client, std::uint32_t number);
  void refuse(SessionId to, std::uint32_t producer, const Error& error);
  void close(LiveProducer& producer);
  void offer(LiveProducer& producer);
  Result<std::shared_ptr<PushedSequence>> next_offered(const LiveProducer& producer) const;
  Result<void> join(const PushUnderWay& under_way, PushedSequence& sequence) const;
  void finish_push(LiveProducer& producer, const std::optional<Error>& error, bool ended = false);
  void answer_claim(LiveProducer& producer, const LiveAnswer& answer);
  void tell_version(const VersionWait& to, const std::optional<Error>& error);
  void look_at_versions();

  // live_steps.cpp: what the pool says.
  std::uint64_t tell(const LiveEvent& event);
  void take_results();
  void digest();
  void answered(const LiveAnswer& answer);
  void accepted(const LiveChange& change);
  void changed(const LiveChange& change);
  void count_rows(const LiveStep& step);
  void add_step(const LiveStep& step);
  LiveBatch make_batch(const LiveStep& step, const std::vector<LiveRow>& rows);
  static void add_free_lane(std::uint32_t nobody, LiveBatch& batch);
  void freed(ProducerId id, const PushedSequence& sequence, bool in_area);
  void catch_up(LiveTrainer& trainer);
  bool is_area_crowded();
  std::uint32_t length_of(const PushedSequence& sequence) const {
    return sequence.fields[settings_.schema.primary()].length;
  }
  std::uint64_t ms(Time time) const;

  // spool/live_resume.cpp
  void resume(const SpooledFeed& spooled, std::chrono::milliseconds grace);
  LiveStep step_of(const SpooledStep& step) const;
  SpoolCounts counts() const;
  void release_past(Step first);
  void past_goes_with_the_last();

  // live_service_status.cpp: what it counts, and says of itself.
  void pass_time(Time now);
  void add_waits(ProducerWaits& waits, std::uint64_t passed_ms) const;
  void count_accepted(LiveProducer& producer, const PushedSequence& sequence);
  void add_pool(LiveStatus& status, std::uint64_t now_ms) const;
  void add_producers(LiveStatus& status, std::uint64_t now_ms) const;
  ProducerStatus producer_status(const LiveProducer& producer, std::uint64_t now_ms) const;

  template <class Body>
  void send(SessionId to, Body body) {
    messages_.push_back({to, encode(std::move(body))});
  }

  LiveFeedSettings settings_;
  const std::uint64_t incarnation_;
  struct Clock {
    Time began;
    std::uint64_t now_ms = 0;  ///< Since then.
  } clock_;
  LiveResults results_;
  LivePool pool_;
  ProducerTable producers_;
  std::map<std::uint64_t, ProducerId> asked_;  ///< Events of claims and pushes that wait.
  KeptSequences kept_;
  StepGate gate_;
  LiveTrainers trainers_;
  std::vector<VersionWait> version_waits_;
  std::vector<Message> messages_;
  std::optional<RecordService> record_;  ///< Empty: there is no record.
  std::optional<SpoolNotes> spool_;      ///< Empty: there is no spool.
  Seen seen_;
};

}  // namespace batchwright
