#include "daemon/delivery/feed/roster/subscription_table.h"

#include <utility>

namespace batchwright {

/// What a newcomer wants is known before its epoch is planned; one in an epoch that waits for its
/// plan's turn can be given nothing.
Standing standing_of(const Subscription& of, bool is_planned) {
  Standing standing;
  standing.job = of.job();
  standing.remote = of.client.inline_batches;
  standing.takes_any = of.in_queue();
  standing.holds = of.leases.size();
  standing.served = of.delivered != 0 || !of.leases.empty();
  standing.released = of.released != 0;
  standing.spoke = !of.looks_on();
  standing.asks = of.asked && !of.leases.empty();
  standing.releases_first = of.releases_first();
  standing.over = of.is_over();
  if (of.is_over() || (of.is_served() && !is_planned)) return standing;
  if (!of.rehearsals.empty()) {
    standing.wants = of.rehearsals.front();
  } else {
    standing.wants = of.in_queue() ? any_of(of.cursor.epoch()) : of.cursor.next();
  }
  return standing;
}

Subscription* SubscriptionTable::find(const SubscriptionKey& key) {
  const auto found = all_.find(key);
  return found == all_.end() ? nullptr : &found->second;
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
    const auto found = roster_.wanted().find(wanted);
    if (found == roster_.wanted().end()) continue;
    keys.insert(keys.end(), found->second.all.begin(), found->second.all.end());
  }
  return keys;
}

Subscription& SubscriptionTable::add(const SubscriptionKey& key, Subscription subscription) {
  return all_.emplace(key, std::move(subscription)).first->second;
}

void SubscriptionTable::note(const SubscriptionKey& key, const Circumstances& circumstances) {
  const Subscription& one = all_.at(key);
  roster_.note(key, standing_of(one, circumstances.is_planned));
  if (!one.is_served()) return places_.forget(key);
  const Share& share = one.cursor.share();
  const bool in_queue = one.in_queue();
  const Places::Place place{in_queue,
                            in_queue ? BatchId{one.cursor.epoch(), {}} : one.cursor.next(),
                            share.first,
                            share.count,
                            one.epochs_left != 1,
                            circumstances.left_behind,
                            one.rehearsals.empty() ? SubscriptionKey{} : key};
  if (in_queue) return places_.note(key, place, {});
  places_.note(key, place, Places::Position{one.cursor.epoch(), one.cursor.step()});
}

void SubscriptionTable::remove(const SubscriptionKey& key) {
  roster_.forget(key);
  places_.forget(key);
  let_go_on(key);
  all_.erase(key);
}

void SubscriptionTable::clear() {
  all_.clear();
  roster_.clear();
  places_.clear();
  barred_.clear();
  leading_.clear();
}

bool SubscriptionTable::have_moved() {
  return std::exchange(seen_places_, places_.revision()) != places_.revision();
}

std::size_t SubscriptionTable::slots_needed_with(const Job& job, std::uint32_t rank) const {
  std::set<std::uint32_t> here{rank};
  for (const auto& [key, subscription] : all_) {
    const bool is_mate = subscription.job() == job && !subscription.client.inline_batches;
    if (is_mate) here.insert(subscription.terms.rank);
  }
  return roster_.slots_needed_for(job, here.size());
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

void SubscriptionTable::hold_back(const SubscriptionKey& key, Bar why) {
  (why == Bar::slots ? barred_ : leading_).insert(key);
}

void SubscriptionTable::let_go_on(const SubscriptionKey& key) {
  barred_.erase(key);
  leading_.erase(key);
}

std::optional<std::vector<SubscriptionKey>> SubscriptionTable::leading_once_slowest_moved() {
  const auto slowest = places_.slowest();
  if (std::exchange(seen_slowest_, slowest) == slowest) return {};
  return std::vector<SubscriptionKey>{leading_.begin(), leading_.end()};
}

std::vector<SubscriptionKey> SubscriptionTable::barred_once_loosened(bool slots_changed) {
  if (barred_.empty() || (seen_loosened_ == roster_.loosened() && !slots_changed)) return {};
  seen_loosened_ = roster_.loosened();
  return {barred_.begin(), barred_.end()};
}

bool SubscriptionTable::is_news(std::optional<Epoch>& told, Epoch epoch) {
  if (told && *told >= epoch) return false;
  told = epoch;
  return true;
}

void SubscriptionTable::hold_over(const ClientInfo& client, std::vector<SlotRef> slots) {
  held_over_.keep(client, std::move(slots));
  roster_.set_aside(held_over_.slots());
}

std::vector<SlotRef> SubscriptionTable::let_go(SessionId session) {
  std::vector<SlotRef> slots = held_over_.let_go(session);
  roster_.set_aside(held_over_.slots());
  return slots;
}

}  // namespace batchwright
