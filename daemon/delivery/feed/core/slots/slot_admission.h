#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"

namespace batchwright {

/// The job of subscriptions that wait for each other, as ranks at a collective do.
struct Job {
  std::uint32_t ranks = 0;       ///< 0: the subscription waits for no other.
  std::uint32_t ranks_here = 0;  ///< Ranks on this host; 0: unknown.
  friend constexpr auto operator<=>(const Job&, const Job&) = default;
};

/// Stands for whichever batch of a queue's epoch is next.
inline BatchId any_of(Epoch epoch) { return {epoch, BatchIndex{UINT64_MAX}}; }

/// The facts about one subscription that the rule needs.
struct AdmissionState {
  Job job;
  bool remote = false;           ///< Its batches are in slots only while they are sent.
  bool takes_any = false;        ///< It is in a queue, and shares its next batch with no other.
  std::optional<BatchId> wants;  ///< Its next batch; empty: none that could be given to it now.
  bool over = false;             ///< It gets nothing more.
  std::size_t holds = 0;         ///< Batches.
  bool served = false;           ///< It was given a batch at some time.
  bool shows_job = false;        ///< It has given back more than a window: its job is complete.
  bool spoke = false;            ///< It has given one back, or said that it waits.
  bool asks = false;             ///< It said that it waits, and nothing came since.
  bool releases_first = false;   ///< It was seen to give back its last batch before the next one.
  friend bool operator==(const AdmissionState&, const AdmissionState&) = default;
};

/// Decides which subscription may take a slot. It promises that some client can always go on, where
/// there is a slot more than subscriptions on this host, ranks that are still to come included;
/// SLOTS.md has the rule and its proof. It keeps counts, and the states stay with their owner, so
/// that a question costs no walk over the subscriptions. Threads: one at a time.
class SlotAdmission {
 public:
  /// The subscriptions that want one batch.
  struct Wanting {
    std::set<SubscriptionKey> all;
    std::size_t newcomers = 0;     ///< Hold nothing, and were given nothing yet.
    std::size_t returning = 0;     ///< Hold nothing, and held some.
    std::size_t last_in_hand = 0;  ///< Hold one, with nothing in reserve.
  };

  explicit SlotAdmission(std::size_t slots) : slots_(slots) {}

  /// A subscription's state is another. `before`: null where it is new. `now`: null where it goes.
  void change(const SubscriptionKey& key, const AdmissionState* before, const AdmissionState* now);
  /// Ranks that have not come so far, of jobs that did not say how many are on this host, are
  /// elsewhere.
  void stop_expecting();
  /// Whether ranks are expected of which nothing is known.
  bool expects_unknown() const;

  /// So many slots are held by none of the subscriptions, until their holders let go.
  void set_aside(std::size_t slots);
  /// Whether a subscription may be given its next batch while `held` slots are. `is_held`: that
  /// batch is in one of them.
  bool may_take(const AdmissionState& one, std::size_t held, bool is_held) const;

  /// Slots with which all that are here or expected can go on, whatever each holds.
  std::size_t slots_needed() const { return entitled_ + to_come() + aside_ + 1; }
  /// Slots that a newcomer's job needs, `ranks` of which are here: one for each of them, of the
  /// other jobs' ranks, and of the other subscriptions on this host, and one that goes round.
  std::size_t slots_needed_for(const Job& job, std::size_t ranks) const;
  /// The same for a newcomer of no job; 0 where no job is here, as nothing can stand still then.
  std::size_t slots_needed_beside_jobs() const;
  /// Subscriptions on this host that belong to no job.
  std::size_t loners() const { return loners_; }
  /// Ranks of a job that are expected and not here.
  std::size_t absent(const Job& job) const;
  const std::map<BatchId, Wanting>& wanted() const { return wanted_; }
  /// Changes whenever something that barred a subscription may have gone.
  std::uint64_t loosened() const { return loosened_; }

 private:
  struct Group {
    std::size_t members = 0;  ///< Members on this host.
    std::size_t remote = 0;
    std::size_t unserved = 0;
    std::size_t reserves = 0;
    std::size_t expected = 0;  ///< Ranks on this host; 0: as many as are there.
    std::size_t absent() const;
  };
  void count(const SubscriptionKey& key, const AdmissionState& one, bool in);
  void count_want(const SubscriptionKey& key, const AdmissionState& one, bool in);
  void count_in_job(const AdmissionState& one, bool in);
  std::size_t to_come() const { return to_come_; }
  std::size_t ranks_beside(const Job& job) const;
  bool newcomer_may_take(const AdmissionState& one, std::size_t held, bool is_held) const;
  bool may_reserve(const AdmissionState& one, std::size_t left) const;

  /// Slots that subscriptions can have.
  std::size_t usable() const { return slots_ - std::min(aside_, slots_); }

  std::size_t slots_;
  std::size_t aside_ = 0;
  std::map<Job, Group> jobs_;
  std::map<BatchId, Wanting> wanted_;
  std::size_t entitled_ = 0;      ///< Subscriptions on this host that are not done.
  std::size_t loners_ = 0;        ///< Those of them that belong to no job.
  std::size_t fresh_ = 0;         ///< Those of them that were given nothing yet.
  std::size_t reserves_ = 0;      ///< Batches that members of jobs hold beyond one each.
  std::size_t keepers_ = 0;       ///< Holders that may keep their last batch until the next comes.
  std::size_t newcomer_ids_ = 0;  ///< Different batches that newcomers want, and so on.
  std::size_t returning_ids_ = 0;
  std::size_t last_ids_ = 0;
  std::size_t to_come_ = 0;
  std::uint64_t loosened_ = 0;
};

}  // namespace batchwright
