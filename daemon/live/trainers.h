#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/unit_table.h"

namespace batchwright {

/// How far trainers are: which of them wait for the next step, which steps are not released, and
/// which may not be trained yet.
class Trainers {
 public:
  /// Whether anything was ever taken, or a version announced: claims wait for that.
  bool started() const { return started_; }
  void start() { started_ = true; }
  std::uint64_t steps() const { return steps_; }  ///< That were cut.

  /// Returns the step that is handed out at once; empty: it waits for the next one, or its step is
  /// on its way.
  std::optional<std::uint64_t> take(const LiveTake& take, std::uint64_t event);
  /// Whether a trainer waits for the next step, and whether a loop does.
  bool wanting() const { return !waiting_.empty(); }
  bool loop_waits() const { return loops_ != 0; }

  /// A step was cut, of these sequences. Returns the takes that get it.
  std::vector<std::uint64_t> add_step(std::vector<SequenceId> sequences);
  /// No step will come. Returns the takes that hear so.
  std::vector<std::uint64_t> end();
  /// Returns the sequences of the step if that was its last release.
  std::vector<SequenceId> release(const LiveRelease& release);
  /// For a pool that goes on behind so many steps, of which those from `first_ahead` may not be
  /// trained.
  void resume(std::uint64_t steps, std::uint64_t first_ahead);
  /// The same: the step is not released, and `holder`, which takes no step, stands for all that are
  /// due it.
  void keep(std::uint64_t step, std::vector<SequenceId> sequences, TrainerId holder);

  /// The trainer is due nothing more. Returns the sequences of steps that it was the last to hold.
  std::vector<SequenceId> leave(TrainerId trainer);

  /// Steps that were cut and may not be trained yet.
  std::uint64_t ahead() const { return ahead_count_; }
  /// The first of those; steps() if there is none.
  std::uint64_t first_ahead() const { return ahead_.empty() ? steps_ : ahead_.front().first; }
  /// So many steps more are trained.
  void trained(std::uint64_t count);

 private:
  struct Trainer {
    bool known = false;
    std::uint64_t joined = 0;    ///< The first step that it could get.
    std::uint64_t position = 0;  ///< The next step that it gets.
  };
  struct Take {
    TrainerId trainer = 0;
    std::uint64_t event = 0;
    bool prefetch = false;
  };
  struct OpenStep {
    std::vector<TrainerId> holders;
    std::vector<SequenceId> sequences;
  };

  bool started_ = false;
  std::uint64_t steps_ = 0;
  std::uint64_t resumed_ = 0;      ///< Steps of the pool before, which this one goes on.
  std::vector<Trainer> trainers_;  ///< By id.
  std::vector<Take> waiting_;      ///< In the order in which they began to wait.
  std::size_t loops_ = 0;          ///< Of those, without prefetch.
  std::map<std::uint64_t, OpenStep> open_;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> ahead_;  ///< First and last of runs of steps.
  std::uint64_t ahead_count_ = 0;
};

}  // namespace batchwright
