#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/memory/payload.h"
#include "formats/formats.h"

namespace batchwright {

/// A batch as the daemon announced it: where it lies, or what came along.
struct Ticket {
  std::uint64_t lease = 0;
  std::uint32_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t index = 0;
  bool rehearsal = false;
  Payload payload{};  ///< Without an arena only.
};

struct EpochEnded {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;  ///< Steps that the epoch had.
  bool last = false;        ///< Nothing follows.
};

struct EpochBegan {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;
  bw_fingerprint plan{};
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
  bool is_behind() const { return queue_ && epoch_ < told_epoch_; }

  /// The position of the first batch that was not handed out.
  bw_position position() const;
  const bw_position& first() const { return start_; }
  /// The number of steps of the epoch that position() names.
  std::uint64_t steps() const;
  /// Whether a global step is begun and not complete.
  bool within_step() const { return place_ != 0; }
  const bw_fingerprint& plan() const { return plan_; }
  /// The first arguments of start(): they stay the same as long as it lives.
  const std::string& terms() const { return terms_; }

 private:
  std::uint64_t expected_index() const;
  Result<Verdict> check_rehearsal(const Ticket& ticket);
  Result<void> check_expected(const wire::Subscribed& answer) const;
  Result<void> go_on(const wire::Subscribed& answer);
  void begin_anew(const bw_fingerprint& plan, std::uint64_t steps);
  Result<void> check_plan(const bw_fingerprint& had, const bw_fingerprint& found,
                          std::string_view terms) const;
  Error not_due(const std::string& what) const;
  bool counted_out(std::uint64_t next_epoch) const;

  const std::string feed_;
  const bool queue_;
  const std::uint64_t epochs_;  ///< Asked for; 0: no end.
  const std::uint32_t rank_;    ///< 0 but when sharded.
  const std::uint32_t rehearsals_;
  std::optional<bw_position> expected_;  ///< The program's next place, and its plan.
  bool started_ = false;
  bw_position start_{};
  std::string terms_;
  std::uint32_t world_ = 1;
  std::uint32_t per_step_ = 1;
  std::uint32_t first_ = 0;  ///< Our first place within a step.

  std::uint64_t known_epoch_ = 0;          ///< The epoch of plan_ and steps_.
  std::uint64_t told_epoch_ = 0;           ///< Queue mode: where the daemon is.
  std::optional<std::uint64_t> taken_of_;  ///< Queue mode: the epoch of the latest batch.
  std::uint32_t again_ = 0;                ///< Batches of this step that come again.
  bool end_again_ = false;                 ///< The end of known_epoch_ comes again.
  bool rehearsing_ = false;                ///< Nothing else was handed out yet.
  std::vector<std::uint64_t> rehearsed_;   ///< Indices, as handed out.
  std::size_t rehearsed_again_ = 0;        ///< Those of them that came in this session.

  mutable std::mutex mutex_;  // guards the place, which is written by the thread that has the turn
  bw_fingerprint plan_{};
  std::uint64_t steps_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
  std::uint32_t place_ = 0;  ///< Batches taken of this step.
};

/// What is another, in words; empty when nothing is. The texts may be empty, where they are not
/// known.
std::string describe_change(const bw_fingerprint& had, std::string_view had_terms,
                            const bw_fingerprint& found, std::string_view found_terms);

}  // namespace batchwright
