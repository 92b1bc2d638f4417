#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "daemon/delivery/feed/ids.h"
#include "daemon/live/live.h"

namespace batchwright {

/// A trainer of a live feed: a subscription; or, with a key of zeros, all workers of the queue.
using TrainerKey = SubscriptionKey;

/// A trainer as the pool knows it.
struct LiveTrainer {
  TrainerId id = 0;
  std::uint64_t taken = 0;     ///< The pool has given it the steps before this one.
  std::uint64_t released = 0;  ///< It has released those before this one.
  bool joined = false;         ///< The pool knows it.
  bool waits = false;          ///< For its next step, as the pool knows,
  bool loop = false;           ///< and its loop does.
};

/// The trainers of a live feed, their small numbers, and the steps from which they may begin again.
/// Threads: one at a time.
class LiveTrainers {
 public:
  LiveTrainer* find(const TrainerKey& key) {
    const auto found = all_.find(key);
    return found == all_.end() ? nullptr : &found->second;
  }
  /// It may be new.
  LiveTrainer& get(const TrainerKey& key) {
    const auto [found, is_new] = all_.try_emplace(key);
    if (!is_new) return found->second;
    if (free_.empty()) {
      found->second.id = static_cast<TrainerId>(all_.size() - 1);
    } else {
      found->second.id = free_.extract(free_.begin()).value();
    }
    return found->second;
  }
  std::optional<LiveTrainer> remove(const TrainerKey& key) {
    const auto found = all_.extract(key);
    if (!found) return {};
    free_.insert(found.mapped().id);
    return found.mapped();
  }
  /// Whether there is no other.
  bool has_only(const TrainerKey& key) const { return all_.size() == 1 && all_.contains(key); }
  /// A step was cut: those that wait have it.
  void step_cut() {
    for (auto& [key, trainer] : all_) {
      trainer.taken += trainer.waits ? 1 : 0;
      trainer.waits = trainer.loop = false;
    }
  }

  /// A trainer of this session may begin again at this step. The mark of a session that is gone
  /// stays until another one marks a later step: it may come back.
  void mark(SessionId session, Step step) {
    marks_[session] = step;
    if (left_mark_ && *left_mark_ < step) left_mark_.reset();
  }
  void session_ended(SessionId session) {
    const auto mark = marks_.extract(session);
    if (mark && (!left_mark_ || mark.mapped() < *left_mark_)) left_mark_ = mark.mapped();
  }
  /// The lowest mark that counts; empty: there is none.
  std::optional<Step> lowest_mark() const {
    std::optional<Step> lowest = left_mark_;
    for (const auto& [session, mark] : marks_) lowest = std::min(lowest.value_or(mark), mark);
    return lowest;
  }
  /// Goes on with a mark of a session that is gone.
  void resume_mark(Step mark) { left_mark_ = mark; }
  bool has_mark(SessionId session) const { return marks_.contains(session); }
  /// No trainer asks for steps before this one. Returns the first that is to be kept.
  Step ask_from(Step step) {
    asked_from_ = step;
    Step lowest = std::min(step, left_mark_.value_or(step));
    for (const auto& [session, mark] : marks_) lowest = std::min(lowest, mark);
    return lowest;
  }
  Step asked_from() const { return asked_from_; }

 private:
  std::map<TrainerKey, LiveTrainer> all_;
  std::set<TrainerId> free_;  ///< Numbers of trainers that are gone.
  std::map<SessionId, Step> marks_;
  std::optional<Step> left_mark_;  ///< The lowest of sessions that are gone.
  Step asked_from_{0};
};

}  // namespace batchwright
