#include "daemon/delivery/feed/core/subscription_table.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace batchwright {
namespace {

/// Where a subscription stands; empty: nowhere.
std::optional<Place> place_of(const Subscription& one) {
  if (!one.is_served()) return {};
  const Share& share = one.cursor.share();
  return Place{one.in_queue(),
               one.in_queue() ? BatchId{one.cursor.epoch(), {}} : one.cursor.next(),
               share.first,
               share.count,
               one.epochs_left != 1,
               one.straggler.left_behind,
               one.rehearsals.empty() ? SubscriptionKey{} : one.key()};
}

}  // namespace

void OrphanedSlots::keep(const ClientInfo& client, std::vector<SlotRef> slots) {
  if (slots.empty()) return;
  Left& left = left_[client.session];
  left.client = batchwright::describe(client);
  left.slots.insert(left.slots.end(), std::make_move_iterator(slots.begin()),
                    std::make_move_iterator(slots.end()));
}

std::vector<SlotRef> OrphanedSlots::release(SessionId session) {
  auto gone = left_.extract(session);
  return gone ? std::move(gone.mapped().slots) : std::vector<SlotRef>();
}

std::size_t OrphanedSlots::slots_of(SessionId session) const {
  const auto found = left_.find(session);
  return found == left_.end() ? 0 : found->second.slots.size();
}

std::size_t OrphanedSlots::slots() const {
  std::size_t sum = 0;
  for (const auto& [session, left] : left_) sum += left.slots.size();
  return sum;
}

std::string OrphanedSlots::describe() const {
  std::string text;
  for (const auto& [session, left] : left_) {
    text += fmt::format("{}{}, whose session ended, holds {}", text.empty() ? "" : ", ",
                        left.client, left.slots.size());
  }
  return text;
}

/// What a newcomer wants is known before its epoch is planned; one in an epoch that waits for its
/// plan's turn can be given nothing.
AdmissionState admission_state_of(const Subscription& of, bool is_planned) {
  AdmissionState state;
  state.job = of.job();
  state.remote = of.client.inline_batches;
  state.takes_any = of.in_queue();
  state.holds = of.leases.size();
  state.served = of.delivered != 0 || !of.leases.empty();
  state.shows_job = of.released > of.terms.window;
  state.spoke = !of.looks_on();
  state.asks = of.asked && !of.leases.empty();
  state.releases_first = of.releases_first();
  state.over = of.is_over();
  if (of.is_over() || (of.is_served() && !is_planned)) return state;
  if (!of.rehearsals.empty()) {
    state.wants = of.rehearsals.front();
  } else {
    state.wants = of.in_queue() ? any_of(of.cursor.epoch()) : of.cursor.next();
  }
  return state;
}

const Subscription* SubscriptionTable::find(const SubscriptionKey& key) const {
  const auto found = all_.find(key);
  return found == all_.end() ? nullptr : &found->second;
}

std::vector<SubscriptionKey> SubscriptionTable::keys() const {
  std::vector<SubscriptionKey> keys;
  keys.reserve(all_.size());
  for (const auto& [key, subscription] : all_) keys.push_back(key);
  return keys;
}

std::vector<SubscriptionKey> SubscriptionTable::keys_of(SessionId session) const {
  std::vector<SubscriptionKey> keys;
  const auto last = all_.upper_bound({session, {UINT32_MAX}});
  for (auto it = all_.lower_bound({session, {}}); it != last; ++it) keys.push_back(it->first);
  return keys;
}

std::vector<SubscriptionKey> SubscriptionTable::wanting(const BatchId& id) const {
  std::vector<SubscriptionKey> keys;
  for (const BatchId& wanted : {id, any_of(id.epoch)}) {
    const auto found = admission_.wanted().find(wanted);
    if (found == admission_.wanted().end()) continue;
    keys.insert(keys.end(), found->second.all.begin(), found->second.all.end());
  }
  return keys;
}

void SubscriptionTable::add(Subscription subscription) {
  const SubscriptionKey key = subscription.key();
  index(all_.emplace(key, std::move(subscription)).first->second);
}

void SubscriptionTable::remove(const SubscriptionKey& key) {
  Subscription& one = all_.at(key);
  admission_.change(key, &*one.index.admission, nullptr);
  index_place(one, {}, {});
  index_blocked(one, BlockedBy::nothing);
  index_short(one, false);
  all_.erase(key);
}

void SubscriptionTable::clear() {
  all_.clear();
  admission_ = SlotAdmission(slots_);
  places_.clear();
  positions_.clear();
  blocked_.clear();
  leading_.clear();
  short_ = 0;
}

void SubscriptionTable::set_planned(const std::set<Epoch>& epochs) {
  const std::set<Epoch> before = std::exchange(planned_, epochs);
  if (before == planned_) return;
  for (auto& [key, one] : all_) {
    const Epoch epoch = one.cursor.epoch();
    if (before.contains(epoch) != planned_.contains(epoch)) index(one);
  }
}

void SubscriptionTable::index(Subscription& one) {
  const SubscriptionKey key = one.key();
  const AdmissionState state = admission_state_of(one, planned_.contains(one.cursor.epoch()));
  std::optional<AdmissionState>& counted = one.index.admission;
  if (counted != state) {
    admission_.change(key, counted ? &*counted : nullptr, &state);
    counted = state;
  }
  const std::optional<Place> place = place_of(one);
  std::optional<Position> position;
  if (place && !place->in_queue) position = Position{one.cursor.epoch(), one.cursor.step()};
  index_place(one, place, position);
  index_blocked(one, one.blocked_by);
  index_short(one, one.is_short());
}

void SubscriptionTable::index_place(Subscription& one, const std::optional<Place>& place,
                                    const std::optional<Position>& position) {
  IndexEntry& entry = one.index;
  if (entry.place != place) {
    if (entry.place) {
      const auto left = places_.find(*entry.place);
      left->second.erase(one.key());
      if (left->second.empty()) places_.erase(left);
    }
    if (place) places_[*place].emplace(one.key(), &one.straggler);
    entry.place = place;
  }
  if (entry.position == position) return;
  if (entry.position) {
    const auto left = positions_.find(*entry.position);
    if (--left->second == 0) positions_.erase(left);
  }
  if (position) ++positions_[*position];
  entry.position = position;
}

void SubscriptionTable::index_blocked(Subscription& one, BlockedBy blocked_by) {
  if (one.index.blocked_by == blocked_by) return;
  for (const auto& [why, keys] :
       {std::pair(BlockedBy::slots, &blocked_), std::pair(BlockedBy::lead, &leading_)}) {
    if (one.index.blocked_by == why) keys->erase(one.key());
    if (blocked_by == why) keys->insert(one.key());
  }
  one.index.blocked_by = blocked_by;
}

void SubscriptionTable::index_short(Subscription& one, bool is_short) {
  if (std::exchange(one.index.is_short, is_short) == is_short) return;
  is_short ? ++short_ : --short_;
}

std::optional<Position> SubscriptionTable::slowest() const {
  if (positions_.empty()) return {};
  return positions_.begin()->first;
}

std::size_t SubscriptionTable::slots_needed_with(const Job& job, std::uint32_t rank) const {
  std::set<std::uint32_t> here{rank};
  for (const auto& [key, subscription] : all_) {
    const bool is_mate = subscription.job() == job && !subscription.client.inline_batches;
    if (is_mate) here.insert(subscription.terms.rank);
  }
  return admission_.slots_needed_for(job, here.size());
}

PlanNeeds SubscriptionTable::needs() const {
  PlanNeeds needs;
  for (const auto& [key, subscription] : all_) {
    if (subscription.is_over()) continue;
    const Epoch epoch = subscription.cursor.epoch();
    if (subscription.has_credit()) needs.now.insert(epoch);
    needs.stood_in.insert(epoch);
    needs.next.insert(epoch);
    needs.sessions[epoch].insert(key.session);
    if (subscription.delivered != 0) needs.read.insert(epoch);
    if (subscription.epochs_left != 1) needs.next.insert(Epoch{epoch.value + 1});
  }
  return needs;
}

std::optional<std::vector<SubscriptionKey>> SubscriptionTable::leading_once_slowest_moved() {
  const auto now = slowest();
  if (std::exchange(seen_slowest_, now) == now) return {};
  return std::vector<SubscriptionKey>{leading_.begin(), leading_.end()};
}

std::vector<SubscriptionKey> SubscriptionTable::blocked_once_loosened(bool slots_changed) {
  if (blocked_.empty() || (seen_loosened_ == admission_.loosened() && !slots_changed)) return {};
  seen_loosened_ = admission_.loosened();
  return {blocked_.begin(), blocked_.end()};
}

bool SubscriptionTable::is_news(std::optional<Epoch>& told, Epoch epoch) {
  if (told && *told >= epoch) return false;
  told = epoch;
  return true;
}

void SubscriptionTable::orphan(const ClientInfo& client, std::vector<SlotRef> slots) {
  orphaned_.keep(client, std::move(slots));
  admission_.set_aside(orphaned_.slots());
}

std::vector<SlotRef> SubscriptionTable::release_orphaned(SessionId session) {
  std::vector<SlotRef> slots = orphaned_.release(session);
  admission_.set_aside(orphaned_.slots());
  return slots;
}

}  // namespace batchwright
