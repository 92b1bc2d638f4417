#pragma once

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

/// The trainers of a live feed, and their small numbers. Threads: one at a time.
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
  /// A step was cut: those that wait have it.
  void step_cut() {
    for (auto& [key, trainer] : all_) {
      trainer.taken += trainer.waits ? 1 : 0;
      trainer.waits = trainer.loop = false;
    }
  }

 private:
  std::map<TrainerKey, LiveTrainer> all_;
  std::set<TrainerId> free_;  ///< Numbers of trainers that are gone.
};

}  // namespace batchwright
