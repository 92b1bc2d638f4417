#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "client/library/session/position.h"
#include "client/library/session/rehearsals.h"
#include "client/library/session/ticket.h"
#include "formats/formats.h"

namespace batchwright {

/// The batches of each step that are one subscription's: so many from `first` on.
struct Share {
  std::uint32_t world = 1;
  std::uint32_t per_step = 1;
  std::uint32_t first = 0;

  /// The index of the batch at this place of the subscription's part of a step.
  std::uint64_t index_at(std::uint64_t step, std::uint32_t place) const {
    return step * world + first + place;
  }
};

/// The order of one subscription, and the place that the program has reached.
///
/// A daemon that was lost is asked for the step that is not complete, and sends it from its start.
/// What was handed out of it already comes again, and is due again, but not for the program. The
/// same goes for an epoch's end while the next epoch is not known: its fingerprint may be another.
/// Threads: the one that has the turn; position() and steps() from any.
class Progress {
 public:
  enum class Verdict {
    hand_out,  ///< The program's, and taken by advance().
    pass,      ///< It was handed out before.
  };

  explicit Progress(const wire::SubscribeT& request);

  /// The daemon's answer to Subscribe. Errors: malformed_message; fingerprint_mismatch.
  Result<void> start(const wire::Subscribed& answer);

  /// Fills in where to go on after the daemon was lost.
  void resume(wire::SubscribeT& request);

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
  bool is_behind() const { return asked_.queue && place_.next.epoch < queue_.told_epoch; }

  /// Whether the queue has had all its epochs when the first grant came.
  bool is_over_from_the_start() const {
    return asked_.queue && asked_.until_epoch != 0 && first_.epoch >= asked_.until_epoch;
  }

  /// The position of the first batch that was not handed out.
  Position position() const;
  const Position& first() const { return first_; }
  /// The number of steps of the epoch that position() names.
  std::uint64_t steps() const;
  /// Whether a global step is begun and not complete.
  bool within_step() const { return place_.taken != 0; }
  /// The text behind the first plan: it stays the same as long as this lives.
  const std::string& terms() const { return terms_; }

 private:
  /// The part of the request that the order depends on.
  struct Asked {
    std::string feed;
    bool queue = false;
    std::uint64_t epochs = 0;       ///< 0: no end.
    std::uint64_t until_epoch = 0;  ///< Of the queue; 0: no end.
    std::uint32_t rank = 0;         ///< 0 except when sharded.
  };
  /// A queue's epochs, which other clients end as well.
  struct QueueEpochs {
    std::uint64_t told_epoch = 0;           ///< The daemon's.
    std::optional<std::uint64_t> taken_of;  ///< That of the latest batch.
  };
  /// What a new daemon sends though it was handed out before.
  struct Again {
    std::uint32_t batches = 0;  ///< Of the step that is not complete.
    bool end = false;           ///< The end of known_epoch_.
  };
  struct Place {
    Position next;  ///< With the plan of known_epoch_.
    std::uint64_t steps = 0;
    std::uint32_t taken = 0;  ///< Batches taken of the next step.
  };

  std::uint64_t expected_index() const;
  /// Where a new daemon is to go on.
  Position resumption() const;
  bool has_begun(const wire::Subscribed& answer) const;
  Result<Verdict> check_rehearsal(const Ticket& ticket);
  Result<void> check_expected(const wire::Subscribed& answer) const;
  Result<void> go_on(const wire::Subscribed& answer);
  void begin_anew(const Fingerprint& plan, std::uint64_t steps);
  void take_up(const Fingerprint& plan, std::uint64_t steps);
  Result<void> check_plan(const Fingerprint& had, const Terms& found) const;
  Error not_due(const std::string& what) const;
  bool counted_out(std::uint64_t next_epoch) const;

  const Asked asked_;
  std::optional<Position> expected_;  ///< The program's next place, and its plan.
  bool started_ = false;
  Position first_;
  std::string terms_;
  Share share_;
  std::uint64_t known_epoch_ = 0;  ///< The epoch that place_'s plan and steps are of.
  QueueEpochs queue_;
  Again again_;
  Rehearsals rehearsals_;
  mutable std::mutex mutex_;  ///< Guards place_, which the thread that has the turn writes.
  Place place_;
};

}  // namespace batchwright
