// The part of Feed that knows what a subscription waits for.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

/// Ranks that are still to come, or to come back, of the jobs that some ranks are here of. Jobs
/// are told apart by their number of ranks; several of one number are counted together.
std::size_t absent_ranks(const Subscriptions& subscriptions) {
  std::map<std::uint32_t, std::size_t> present;
  for (const auto& [key, subscription] : subscriptions) {
    if (subscription.mode == wire::Mode::sharded) ++present[subscription.ranks];
  }
  std::size_t absent = 0;
  for (const auto& [ranks, count] : present) absent += (ranks - count % ranks) % ranks;
  return absent;
}

}  // namespace

/// The batch a subscription gets next; none at the end of its epoch, or of what a queue has left.
std::optional<BatchId> Feed::next_of(const Subscription& subscription) const {
  if (!subscription.accepted || subscription.finished) return {};
  return ahead(subscription, 0);
}

/// Whether a subscription may hold one batch more. Who holds nothing always may. Who holds some
/// leaves a slot for each batch that the others wait for empty-handed, for each rank that is still
/// to come, since the ranks that are here may wait for it with their batches in hand, and one for
/// a newcomer: else a few could hold every slot, and all would wait for them. A batch that another
/// holds takes no slot now, but would keep the last one when the other gives it back.
bool Feed::may_take(const Subscription& subscription, const BatchId& id) const {
  if (subscription.leases.empty()) return true;
  const std::size_t left = slots_->cache.size() - slots_->cache.held();
  if (is_held(id)) return left > 0;
  if (!needy_) needy_ = needy() + absent_ranks(subscriptions_);
  return left > *needy_ + 1;
}

/// Batches that somebody who holds nothing gets next and that nobody holds yet. Of a queue each
/// gets another.
std::size_t Feed::needy() const {
  std::set<BatchId> ids;
  std::uint64_t in_queue = 0;
  for (const auto& [key, subscription] : subscriptions_) {
    if (!subscription.leases.empty()) continue;
    const bool shares = subscription.in_queue() && subscription.rehearsals.empty();
    const auto id = next_of(subscription);
    if (!id) continue;
    const auto own =
        shares ? queue().ahead(in_queue++, batches_of(queue().epoch())) : std::optional(id->index);
    if (own && !is_held({id->epoch, *own})) ids.insert({id->epoch, *own});
  }
  return ids.size();
}

bool Feed::is_held(const BatchId& id) const {
  const auto slot = slots_->cache.find(id);
  return slot && slots_->cache.is_held(*slot);
}

/// How many global steps `one` is ahead of another; negative or unknown distances are none.
std::optional<std::uint64_t> Feed::steps_ahead(const Subscription& one,
                                               const Subscription& of) const {
  const std::uint64_t epochs = one.cursor.epoch().value - of.cursor.epoch().value;
  if (one.cursor.epoch() < of.cursor.epoch()) return {};
  const std::uint64_t here = one.cursor.step().value + epochs * steps_of(of.cursor.epoch());
  if (here < of.cursor.step().value) return {};
  return here - of.cursor.step().value;
}

/// Where sharing matters more than speed, nobody runs further ahead of the slowest than max_lead.
bool Feed::leads_too_far(const Subscription& subscription) const {
  if (settings_.max_lead == 0 || subscription.in_queue()) return false;
  return std::any_of(subscriptions_.begin(), subscriptions_.end(), [&](const auto& entry) {
    const Subscription& other = entry.second;
    if (!other.accepted || other.finished || other.in_queue()) return false;
    const auto lead = steps_ahead(subscription, other);
    return lead && *lead >= settings_.max_lead;
  });
}

std::string Feed::who_holds_slots() const {
  std::string text;
  for (const auto& [key, subscription] : subscriptions_) {
    if (subscription.leases.empty()) continue;
    text += fmt::format("{}{} holds {}", text.empty() ? "" : ", ", describe(subscription.client),
                        subscription.leases.size());
  }
  return text.empty() ? "nobody holds any" : text;
}

std::string Feed::reason_to_wait(const Subscription& subscription) const {
  const Epoch epoch = subscription.cursor.epoch();
  if (failure_) return failure_->message;
  if (!epochs_.find(epoch)) return fmt::format("epoch {} is being planned", epoch.value);
  if (subscription.finished) return "nothing: its epochs are over";
  const auto id = next_of(subscription);
  if (!id && subscription.in_queue()) {
    return fmt::format("the end of epoch {}: batches are not done yet, {}", epoch.value,
                       who_holds_slots());
  }
  if (!id) return "a batch that is about to come";
  if (!subscription.has_credit()) {
    return fmt::format("its own releases: it holds {} batches, as many as its window allows",
                       subscription.leases.size());
  }
  if (leads_too_far(subscription)) {
    return fmt::format("the slowest client, of which it is max_lead = {} steps ahead",
                       settings_.max_lead);
  }
  const auto slot = slots_->cache.find(*id);
  if (slot && slots_->cache.state(*slot) == SlotState::filling) {
    return fmt::format("batch {} of epoch {}, which is being assembled", id->index.value,
                       id->epoch.value);
  }
  for (const auto& [key, other] : subscriptions_) {
    if (!other.patience || !other.patience->waiting()) continue;
    return fmt::format("{}, for a moment: it is behind, and its next batches would leave the slots",
                       describe(other.client));
  }
  return fmt::format(
      "a slot: of {} slots {} are held, and some are kept for clients that have "
      "nothing; {}",
      slots_->cache.size(), slots_->cache.held(), who_holds_slots());
}

bool Feed::waits_for_plan(const Subscription& subscription) const {
  if (subscription.finished) return false;
  return !subscription.accepted || !epochs_.find(subscription.cursor.epoch());
}

/// Who is held back by max_lead waits for other clients, and who waits for the end of a queue's
/// epoch for their releases: neither for the daemon, nor the daemon for him.
WaitingFor Feed::waiting_for(const Subscription& subscription) const {
  if (subscription.finished || failure_) return WaitingFor::none;
  if (waits_for_plan(subscription)) {
    return subscription.has_no_reserve() ? WaitingFor::daemon : WaitingFor::none;
  }
  const auto id = next_of(subscription);
  if (!id || leads_too_far(subscription)) return WaitingFor::none;
  if (subscription.has_credit()) {
    return subscription.has_no_reserve() ? WaitingFor::daemon : WaitingFor::none;
  }
  const SlotCache& cache = slots_->cache;
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
  for (const auto& [key, subscription] : subscriptions_) {
    sum.clients += subscription.waiting.daemon_seconds(now);
    sum.daemon += subscription.waiting.client_seconds(now);
  }
  return sum;
}

std::uint64_t Feed::batches_behind(const Subscription& one, const Subscription& other) const {
  return steps_ahead(other, one).value_or(0) * one.cursor.share().count;
}

void Feed::ask(SessionId session, const wire::Ask& question) {
  const auto found = subscriptions_.find({session, question.subscription()});
  if (found == subscriptions_.end()) return;
  found->second.asked = true;
  note_waiting(found->second);
  wire::WaitingT answer;
  answer.subscription = question.subscription();
  answer.reason = reason_to_wait(found->second);
  ports_.send(session, encode(std::move(answer)));
}

}  // namespace batchwright
