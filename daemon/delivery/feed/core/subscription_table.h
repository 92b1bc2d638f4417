#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/delivery/feed/core/subscription.h"
#include "daemon/delivery/feed/plans/plan_store.h"

namespace batchwright {

/// Slots of sessions that ended while their processes live. Such a process maps the arena and may
/// still read what it was given, so the slots stay held until its arena connection ends.
/// Threads: one at a time.
class OrphanedSlots {
 public:
  /// Adds slots to those that the client's session left.
  void keep(const ClientInfo& client, std::vector<SlotRef> slots);
  /// The slots that the session left, to be given back; empty when it left none.
  std::vector<SlotRef> release(SessionId session);

  std::size_t slots_of(SessionId session) const;
  std::size_t slots() const;
  /// The holders and their numbers of slots, as part of a sentence; empty when there are none.
  std::string describe() const;

 private:
  struct Left {
    std::string client;
    std::vector<SlotRef> slots;
  };
  std::map<SessionId, Left> left_;
};

/// The subscriptions of a feed, and what is counted of them: which may take a slot, where they
/// stand, which are blocked, and what sessions that ended still hold. So a question about all of
/// them costs no walk over them.
///
/// A subscription is changed through edit(), and counted again at the end of that. So the counts
/// are right whenever no edit is under way.
/// Threads: one at a time.
class SubscriptionTable {
 public:
  /// A subscription that is being changed. At its end the table counts the subscription again.
  /// Lifetime: ends before the subscription is removed, and before another edit of it begins.
  class Edit {
   public:
    Edit(SubscriptionTable& table, Subscription& one) : table_(table), one_(one) {}
    ~Edit() { table_.index(one_); }
    Edit(const Edit&) = delete;
    Edit& operator=(const Edit&) = delete;

    Subscription& operator*() const { return one_; }
    Subscription* operator->() const { return &one_; }

   private:
    SubscriptionTable& table_;
    Subscription& one_;
  };

  explicit SubscriptionTable(std::size_t slots) : slots_(slots), admission_(slots) {}

  const Subscriptions& all() const { return all_; }
  bool contains(const SubscriptionKey& key) const { return all_.contains(key); }
  /// Null when there is none.
  const Subscription* find(const SubscriptionKey& key) const;
  const Subscription& at(const SubscriptionKey& key) const { return all_.at(key); }
  std::vector<SubscriptionKey> keys() const;
  std::vector<SubscriptionKey> keys_of(SessionId session) const;
  /// Those whose next batch this is, and those of a queue's epoch of which it may be.
  std::vector<SubscriptionKey> wanting(const BatchId& id) const;

  void add(Subscription subscription);
  Edit edit(const SubscriptionKey& key) { return {*this, all_.at(key)}; }
  void remove(const SubscriptionKey& key);
  /// Removes all. What sessions that ended hold stays noted.
  void clear();
  /// The epochs that have a plan: in others a subscription can be given nothing.
  void set_planned(const std::set<Epoch>& epochs);

  SlotAdmission& admission() { return admission_; }
  const SlotAdmission& admission() const { return admission_; }
  const std::map<Place, Members>& places() const { return places_; }
  /// The slowest of all positions; empty: there is none.
  std::optional<Position> slowest() const;
  /// Whether one of them is_short().
  bool any_short() const { return short_ != 0; }
  /// Slots that would be needed if this rank came, too.
  std::size_t slots_needed_with(const Job& job, std::uint32_t rank) const;
  /// The epochs that subscriptions stand in, and those that they come to after them. One that holds
  /// as many batches as its window allows can take none now.
  PlanNeeds needs() const;

  /// Those that are max_lead ahead, once the slowest is another or elsewhere than when this was
  /// asked last; empty otherwise.
  std::optional<std::vector<SubscriptionKey>> leading_once_slowest_moved();
  /// Those that the rule on slots blocks, if something that blocked one may have gone since this
  /// was asked last, or slots have changed.
  std::vector<SubscriptionKey> blocked_once_loosened(bool slots_changed);

  /// Whether this is the first time that a subscription comes to the epoch, or to its end.
  bool is_first_to_begin(Epoch epoch) { return is_news(last_begun_, epoch); }
  bool is_first_to_end(Epoch epoch) { return is_news(last_ended_, epoch); }

  /// Slots of a session that ended while its process lives.
  const OrphanedSlots& orphaned() const { return orphaned_; }
  void orphan(const ClientInfo& client, std::vector<SlotRef> slots);
  std::vector<SlotRef> release_orphaned(SessionId session);

 private:
  static bool is_news(std::optional<Epoch>& told, Epoch epoch);
  void index(Subscription& one);
  void index_place(Subscription& one, const std::optional<Place>& place,
                   const std::optional<Position>& position);
  void index_blocked(Subscription& one, BlockedBy blocked_by);
  void index_short(Subscription& one, bool is_short);

  std::size_t slots_;
  Subscriptions all_;
  std::set<Epoch> planned_;
  SlotAdmission admission_;  ///< Which of them may take a slot.
  std::map<Place, Members> places_;
  std::map<Position, std::size_t> positions_;
  OrphanedSlots orphaned_;
  std::set<SubscriptionKey> blocked_;  ///< By the rule on slots, from a batch that is ready.
  std::set<SubscriptionKey> leading_;  ///< Blocked by max_lead.
  std::size_t short_ = 0;              ///< Subscriptions that are.
  std::uint64_t seen_loosened_ = 0;
  std::optional<Position> seen_slowest_;
  std::optional<Epoch> last_begun_;  ///< The furthest epoch that one came to, and that one ended.
  std::optional<Epoch> last_ended_;
};

/// How the rule on slots sees a subscription, whose epoch has a plan or not.
AdmissionState admission_state_of(const Subscription& subscription, bool is_planned);

}  // namespace batchwright
