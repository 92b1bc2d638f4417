#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/library/ids.h"
#include "formats/formats.h"

namespace batchwright {

/// The order of one subscription, and the place that the program has reached in it.
///
/// A daemon that was lost is asked for the step that is not complete, and sends it from its start.
/// What was handed out of it already comes again, and is due again, but not for the program. The
/// same goes for an epoch's end while the next epoch is not known, since its fingerprint may be
/// another; and for rehearsals, the largest batches of the first epoch, which come before
/// everything else.
/// Threads: the session's lock; position() and steps() from any.
class ExpectedPosition {
 public:
  enum class Verdict {
    hand_out,  ///< The program's, and taken by advance().
    pass,      ///< It was handed out before.
  };

  explicit ExpectedPosition(wire::SubscribeT request);

  const wire::SubscribeT& asked() const { return asked_; }
  bool is_queue() const { return asked_.mode == wire::Mode::queue; }

  /// The daemon's answer to Subscribe. Errors: malformed_message; fingerprint_mismatch.
  Result<void> start(const wire::Subscribed& answer);
  /// What to ask a new daemon for, once the last one is lost.
  wire::SubscribeT resume();

  /// Errors: malformed_message for what is not due.
  Result<Verdict> check(const Ticket& ticket);
  Result<Verdict> check(const EpochEnded& ended);
  /// Checks the batch at the ticket's place. Errors: malformed_message when it is another feed's,
  /// or of another plan.
  Result<void> check(const Ticket& ticket, const wire::Batch& batch) const;
  Result<void> begin(const EpochBegan& began);
  void advance(const Ticket& ticket);
  /// True when the counted epochs are over.
  bool advance(const EpochEnded& ended);

  /// In queue mode other clients may have ended an epoch that this one has not heard the end of.
  bool is_behind() const { return is_queue() && here().next.epoch < queue_.told_epoch; }
  /// Whether the queue has had all its epochs when the first grant came.
  bool is_over_from_the_start() const {
    return is_queue() && asked_.until_epoch != 0 && first_.epoch >= asked_.until_epoch;
  }

  /// How many of the batches that the daemon sends first were handed out before.
  std::size_t repeated() const {
    return again_.batches + (rehearsals_.due ? rehearsals_.taken.size() - rehearsals_.repeated : 0);
  }

  /// The position of the first batch that was not handed out.
  Position position() const;
  const Position& first() const { return first_; }
  /// The number of steps of the epoch that position() names.
  std::uint64_t steps() const;
  /// Whether a global step is begun and not complete.
  bool within_step() const { return share_.taken_of_step(here().taken) != 0; }
  /// The text behind the first plan: it stays the same as long as this lives.
  const std::string& terms() const { return terms_; }

 private:
  /// A queue's epochs, which other clients end as well.
  struct QueueEpochs {
    std::uint64_t told_epoch = 0;           ///< The daemon's.
    std::optional<std::uint64_t> taken_of;  ///< That of the latest batch.
  };
  struct Rehearsals {
    bool due = false;                  ///< They are over with the first other batch.
    std::vector<std::uint64_t> taken;  ///< Indices, as handed out.
    std::size_t repeated = 0;          ///< Those of them that this session's daemon has sent.
  };
  /// What a new daemon sends though it was handed out before.
  struct Again {
    std::uint32_t batches = 0;  ///< Of the step that is not complete.
    bool end = false;           ///< The end of known_epoch_.
  };
  struct Place {
    Position next;  ///< With the plan of known_epoch_.
    std::uint64_t steps = 0;
    std::uint64_t taken = 0;  ///< Batches of the epoch, by their order; not in queue mode.
  };

  /// place_, for the thread with the session's lock: no other writes it, so that one reads it
  /// without the mutex, which the analysis cannot know.
  const Place& here() const NO_THREAD_SAFETY_ANALYSIS { return place_; }
  /// Where a new daemon is to go on.
  Position resumption() const;
  bool has_begun(const wire::Subscribed& answer) const;
  Result<Verdict> check_rehearsal(const Ticket& ticket);
  Result<void> go_on(const wire::Subscribed& answer);
  void take_up(const Fingerprint& plan, std::uint64_t steps);
  Result<void> check_plan(const Fingerprint& had, const Terms& found, const char* whose) const;
  BatchIndex expected_index() const { return share_.at(here().taken - again_.batches); }
  Error not_due(const std::string& what) const;

  const wire::SubscribeT asked_;
  bool started_ = false;
  Position first_;
  std::string terms_;
  Share share_;
  std::uint64_t known_epoch_ = 0;  ///< The epoch that place_'s plan and steps are of.
  QueueEpochs queue_;
  Rehearsals rehearsals_;
  Again again_;
  mutable Mutex mutex_;
  Place place_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
