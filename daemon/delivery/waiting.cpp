// The part of Feed that knows what a subscription waits for.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

/// A wait is looked at so often, and logged from so long on.
constexpr std::chrono::seconds kLook{1};
/// A job that does not say how many of its ranks are on this host has so long to gather here.
constexpr std::chrono::seconds kGathering{5};

}  // namespace

/// The batch a subscription gets next; none at the end of its epoch, or of what a queue has left.
std::optional<BatchId> Feed::next_of(const Subscription& subscription) const {
  if (!subscription.is_served()) return {};
  return itinerary_of(subscription).ahead(0);
}

/// After everything that changes how a subscription stands.
void Feed::note(const SubscriptionKey& key, const Subscription& subscription) {
  subscriptions_.note(key, {plans_.has(subscription.cursor.epoch()), is_left_behind(key)});
}

void Feed::note_all(Epoch epoch) {
  for (const auto& [key, subscription] : subscriptions_.all()) {
    if (subscription.cursor.epoch() == epoch) note(key, subscription);
  }
}

void Feed::forget(const SubscriptionKey& key) {
  subscriptions_.remove(key);
  scheduler_.stragglers().forget(key);
  starved_.erase(key);
}

bool Feed::may_take(const SubscriptionKey& key, const BatchId& id) const {
  return subscriptions_.roster().may_take(key, slots().held(), is_held(id));
}

bool Feed::is_held(const BatchId& id) const {
  const auto slot = slots().find(id);
  return slot && slots().is_held(*slot);
}

/// How many global steps `one` is ahead of another; negative or unknown distances are none.
std::optional<std::uint64_t> Feed::steps_ahead(const Subscription& one,
                                               const Subscription& of) const {
  return steps_ahead(one, {of.cursor.epoch(), of.cursor.step()});
}

std::optional<std::uint64_t> Feed::steps_ahead(const Subscription& one,
                                               const Places::Position& of) const {
  const auto [epoch, step] = of;
  const std::uint64_t epochs = one.cursor.epoch().value - epoch.value;
  if (one.cursor.epoch() < epoch) return {};
  const std::uint64_t here = one.cursor.step().value + epochs * steps_of(epoch);
  if (here < step.value) return {};
  return here - step.value;
}

/// Where sharing matters more than speed, nobody runs further ahead of the slowest than max_lead.
bool Feed::leads_too_far(const Subscription& subscription) const {
  if (settings_.max_lead == 0 || subscription.in_queue()) return false;
  const auto slowest = subscriptions_.places().slowest();
  if (!slowest) return false;
  const auto lead = steps_ahead(subscription, *slowest);
  return lead && *lead >= settings_.max_lead;
}

bool Feed::waits_for_plan(const Subscription& subscription) const {
  if (subscription.is_over()) return false;
  return !subscription.is_served() || !plans_.has(subscription.cursor.epoch());
}

/// Who is held back by max_lead waits for other clients, and who waits for the end of a queue's
/// epoch for their releases: neither for the daemon, nor the daemon for him. Who looks
/// on is given no more before it says something: it is waited for.
WaitingFor Feed::waiting_for(const Subscription& subscription) const {
  if (subscription.is_over() || failure_) return WaitingFor::none;
  if (waits_for_plan(subscription)) {
    return subscription.has_no_reserve() ? WaitingFor::daemon : WaitingFor::none;
  }
  const auto id = next_of(subscription);
  if (!id || leads_too_far(subscription)) return WaitingFor::none;
  const bool looks_on = subscription.looks_on() && !subscription.leases.empty();
  if (subscription.has_credit() && (!looks_on || subscription.client.inline_batches)) {
    return subscription.has_no_reserve() ? WaitingFor::daemon : WaitingFor::none;
  }
  const SlotCache& cache = slots();
  const bool could_be_had = cache.find(*id) || cache.held() < cache.size();
  return could_be_had ? WaitingFor::client : WaitingFor::none;
}

void Feed::note_waiting(Subscription& subscription) {
  subscription.waiting.become(waiting_for(subscription), WaitingTimes::Time::clock::now());
}

/// Before a subscription goes.
void Feed::keep_waited(const Subscription& subscription) {
  const auto now = WaitingTimes::Time::clock::now();
  waited_before_.clients += subscription.waiting.daemon_seconds(now);
  waited_before_.daemon += subscription.waiting.client_seconds(now);
}

WaitedSeconds Feed::waited(WaitingTimes::Time now) const {
  WaitedSeconds sum = waited_before_;
  for (const auto& [key, subscription] : subscriptions_.all()) {
    sum.clients += subscription.waiting.daemon_seconds(now);
    sum.daemon += subscription.waiting.client_seconds(now);
  }
  return sum;
}

std::uint64_t Feed::batches_behind(const Subscription& one, const Subscription& other) const {
  return steps_ahead(other, one).value_or(0) * one.cursor.share().count;
}

/// That a client waits may let it have what it was not given in reserve. What is on its way to the
/// client does not count as held: then it waits no more.
void Feed::waits(const SubscriptionKey& key, std::uint32_t holds) {
  Subscription* const found = subscriptions_.find(key);
  if (found == nullptr) return;
  Subscription& subscription = *found;
  subscription.speak();
  subscription.asked = subscription.leases.size() == holds;
  if (failure_) return;
  note(key, subscription);
  serve(key, subscription);
  settle_soon();
}

void Feed::ask(SessionId session, const wire::Ask& question) {
  const SubscriptionKey key{session, question.subscription()};
  waits(key, question.holds());
  const Subscription* const found = subscriptions_.find(key);
  if (found == nullptr || question.quiet()) return;
  wire::WaitingT answer;
  answer.subscription = question.subscription();
  answer.reason = reason_to_wait(*found);
  ports_.send(session, encode(std::move(answer)));
}

/// Looks once a second, while somebody is here, for waits that get long.
void Feed::watch() {
  if (subscriptions_.all().empty() || retired_ || std::exchange(watching_, true)) return;
  watch_.expires_after(kLook);
  watch_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
    if (error || alive.expired()) return;
    watching_ = false;
    look_at_waits(Clock::now());
    watch();
  });
}

void Feed::look_at_waits(WaitingTimes::Time now) {
  if (failure_) return;
  if (subscriptions_.roster().expects_unknown() && now - last_came_ >= kGathering) {
    subscriptions_.roster().stop_expecting();
    settle();
  }
  for (const auto& [key, subscription] : subscriptions_.all()) {
    if (!waits_for_clients(key, subscription)) {
      starved_.erase(key);
      continue;
    }
    const auto [found, is_new] = starved_.try_emplace(key, subscription.delivered, now);
    auto& [delivered, since] = found->second;
    if (delivered != subscription.delivered) found->second = {subscription.delivered, now};
    if (is_new || now - since < kLook) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since);
    ports_.log.note<Event::long_wait>(name(), who(subscription), seconds.count(),
                                      reason_to_wait(subscription));
  }
}

/// Whether others' releases or arrival would let it go on, and nothing else.
bool Feed::waits_for_clients(const SubscriptionKey& key, const Subscription& subscription) const {
  if (subscription.is_over() || waits_for_plan(subscription)) return false;
  const auto id = next_of(subscription);
  if (!id) return subscription.in_queue() && subscription.leases.empty();
  if (!subscription.has_credit() || !subscription.has_no_reserve()) return false;
  if (leads_too_far(subscription) || !may_take(key, *id)) return true;
  return !slots().find(*id) && slots().held() == slots().size();
}

}  // namespace batchwright
