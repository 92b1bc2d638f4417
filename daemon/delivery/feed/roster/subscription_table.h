#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "daemon/delivery/feed/plans/plan_turns.h"
#include "daemon/delivery/feed/roster/held_over.h"
#include "daemon/delivery/feed/roster/places.h"
#include "daemon/delivery/feed/roster/roster.h"
#include "daemon/delivery/feed/roster/subscription.h"

namespace batchwright {

/// The subscriptions of a feed, and what is counted of them: which may take a slot, where they
/// stand, which are held back, and what sessions that ended still hold. So a question about all of
/// them costs no walk over them.
/// Threads: one at a time.
class SubscriptionTable {
 public:
  /// What holds one back from a batch, until others have released something or moved.
  enum class Bar : std::uint8_t {
    slots,  ///< The rule on slots.
    lead,   ///< It is max_lead ahead of the slowest.
  };
  /// What the table cannot see of a subscription itself.
  struct Circumstances {
    bool is_planned = false;   ///< Its epoch has a plan.
    bool left_behind = false;  ///< Those ahead wait for it no longer.
  };

  explicit SubscriptionTable(std::size_t slots) : roster_(slots) {}

  const Subscriptions& all() const { return all_; }
  bool contains(const SubscriptionKey& key) const { return all_.contains(key); }
  /// Null when there is none.
  Subscription* find(const SubscriptionKey& key);
  const Subscription* find(const SubscriptionKey& key) const;
  Subscription& at(const SubscriptionKey& key) { return all_.at(key); }
  const Subscription& at(const SubscriptionKey& key) const { return all_.at(key); }
  std::vector<SubscriptionKey> keys() const;
  std::vector<SubscriptionKey> keys_of(SessionId session) const;
  /// Those whose next batch this is, and those of a queue's epoch of which it may be.
  std::vector<SubscriptionKey> wanting(const BatchId& id) const;

  /// It counts from its first note() on. The reference is valid until it is removed.
  Subscription& add(const SubscriptionKey& key, Subscription subscription);
  /// After everything that changes how a subscription stands.
  void note(const SubscriptionKey& key, const Circumstances& circumstances);
  void remove(const SubscriptionKey& key);
  /// Removes all. What sessions that ended hold stays noted.
  void clear();

  Roster& roster() { return roster_; }
  const Roster& roster() const { return roster_; }
  const Places& places() const { return places_; }
  /// Whether subscriptions have come to other places since this was asked last.
  bool have_moved();
  /// Slots that would be needed if this rank came, too.
  std::size_t slots_needed_with(const Job& job, std::uint32_t rank) const;
  /// The epochs that subscriptions stand in, and those that they come to after them. One that holds
  /// as many batches as its window allows can take none now.
  PlanNeeds needs() const;

  void hold_back(const SubscriptionKey& key, Bar why);
  /// It is looked at, and may be held back anew.
  void let_go_on(const SubscriptionKey& key);
  /// Those that are max_lead ahead, once the slowest is another or elsewhere than when this was
  /// asked last; else empty.
  std::optional<std::vector<SubscriptionKey>> leading_once_slowest_moved();
  /// Those that the rule on slots held back, if something that barred one may have gone since this
  /// was asked last, or slots have changed.
  std::vector<SubscriptionKey> barred_once_loosened(bool slots_changed);

  /// Whether this is the first time that a subscription comes to the epoch, or to its end.
  bool is_first_to_begin(Epoch epoch) { return is_news(last_begun_, epoch); }
  bool is_first_to_end(Epoch epoch) { return is_news(last_ended_, epoch); }

  /// Slots of a session that ended while its process lives.
  const HeldOver& held_over() const { return held_over_; }
  void hold_over(const ClientInfo& client, std::vector<SlotRef> slots);
  std::vector<SlotRef> let_go(SessionId session);

 private:
  static bool is_news(std::optional<Epoch>& told, Epoch epoch);

  Subscriptions all_;
  Roster roster_;  ///< Which of them may take a slot.
  Places places_;
  HeldOver held_over_;
  std::set<SubscriptionKey> barred_;   ///< By the rule on slots, from a batch that is ready.
  std::set<SubscriptionKey> leading_;  ///< Held back by max_lead.
  std::uint64_t seen_loosened_ = 0;
  std::uint64_t seen_places_ = 0;
  std::optional<Places::Position> seen_slowest_;
  std::optional<Epoch> last_begun_;  ///< The furthest epoch that one came to, and that one ended.
  std::optional<Epoch> last_ended_;
};

/// How the rule on slots sees a subscription.
Standing standing_of(const Subscription& subscription, bool is_planned);

}  // namespace batchwright
