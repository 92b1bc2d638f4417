#include "daemon/delivery/feed/core/feed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

namespace batchwright {
namespace {

/// Where no subscription stands.
const Members kEmptyPlace;

/// A client that releases nothing for so long is said to.
constexpr std::chrono::seconds kStill{1};
/// Named in one text.
constexpr std::size_t kMostNamed = 8;

/// The one that stands still for longest comes first.
std::string holders_of_slots(const FeedParts& feed, WaitingTimes::Time now) {
  std::vector<const Subscription*> holders;
  for (const auto& [key, subscription] : feed.subscriptions.all()) {
    if (!subscription.leases.empty()) holders.push_back(&subscription);
  }
  std::sort(holders.begin(), holders.end(),
            [](const auto* one, const auto* other) { return one->moved < other->moved; });
  const std::size_t others = holders.size() - std::min(holders.size(), kMostNamed);
  holders.resize(holders.size() - others);
  std::string text;
  for (const Subscription* holder : holders) {
    text +=
        fmt::format("{}{} holds {}", text.empty() ? "" : ", ", who(*holder), holder->leases.size());
    const auto still = std::chrono::duration_cast<std::chrono::seconds>(now - holder->moved);
    if (still >= kStill) text += fmt::format(" and has released none for {} s", still.count());
  }
  if (others != 0) text += fmt::format(", and {} others", others);
  if (const std::string left = feed.subscriptions.orphaned().describe(); !left.empty()) {
    text += (text.empty() ? "" : ", ") + left;
  }
  return text.empty() ? "no client holds any" : text;
}

/// Ranks that are to come, of jobs of which some are here; empty when all are.
std::string absent_ranks(const FeedParts& feed) {
  std::set<Job> jobs;
  for (const auto& [key, subscription] : feed.subscriptions.all()) jobs.insert(subscription.job());
  std::string text;
  for (const Job& job : jobs) {
    if (const std::size_t absent = feed.subscriptions.admission().absent(job); absent != 0) {
      text += fmt::format("; {} ranks of a job of {} are to come", absent, job.ranks);
    }
  }
  return text;
}

std::string slowest_client(const FeedParts& feed) {
  for (const auto& [key, subscription] : feed.subscriptions.all()) {
    const Position here{subscription.cursor.epoch(), subscription.cursor.step()};
    const bool counts = subscription.is_served() && !subscription.in_queue();
    if (counts && feed.subscriptions.slowest() == here) return who(subscription);
  }
  return "no client";
}

/// Where there are fewer slots than all that are here need, some wait for the others to be done.
std::string slots_wanted(const FeedParts& feed) {
  const std::size_t needed = feed.subscriptions.admission().slots_needed();
  if (needed <= feed.scheduler.cache().size()) return "";
  return fmt::format("; with {} slots all that are here could go on at once", needed);
}

}  // namespace

PlanNeeds FeedParts::plan_needs() const {
  PlanNeeds needs = subscriptions.needs();
  if (!desk.is_open() || live) return needs;
  if (life.had_client()) needs.stood_in.insert(desk.epoch());
  needs.next.insert({desk.epoch(), Epoch{desk.epoch().value + 1}});
  return needs;
}

UpcomingBatches FeedParts::upcoming_of(const Subscription& subscription) const {
  const Epoch epoch = subscription.cursor.epoch();
  const bool goes_on = subscription.epochs_left != 1;
  return {subscription.cursor, plans.steps(epoch),
          goes_on ? plans.steps(Epoch{epoch.value + 1}) : 0,
          subscription.in_queue() ? &desk.queue() : nullptr, subscription.rehearsals};
}

std::optional<BatchId> FeedParts::next_of(const Subscription& subscription) const {
  if (!subscription.is_served()) return {};
  if (!subscription.in_queue()) return upcoming_of(subscription).ahead(0);
  const Epoch epoch = subscription.cursor.epoch();
  if (desk.epoch() != epoch) return {};
  const QueueOwner owner = subscription.owner();
  const auto index = desk.queue().next_for(owner, plans.steps(epoch) * settings.plan.world);
  if (!index || (desk.queue().gave_up(owner, *index) && another_can_have(*index, owner))) return {};
  return BatchId{epoch, *index};
}

/// Whether a worker waits with empty hands, and so will get the batch at once, that did not give it
/// up before.
bool FeedParts::another_can_have(BatchIndex index, QueueOwner owner) const {
  const Subscriptions& all = subscriptions.all();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    const Subscription& other = entry.second;
    return other.in_queue() && other.owner() != owner && other.leases.empty() &&
           other.stage == Subscription::Stage::in_epoch && other.cursor.epoch() == desk.epoch() &&
           !desk.queue().gave_up(other.owner(), index);
  });
}

std::vector<Cohort> FeedParts::cohorts() const {
  if (!life.had_client()) {
    const Step first = live ? live->first_kept() : Step{0};
    const Cursor start(whole_share(settings.plan.world), first_epoch, first);
    return {{{start, plans.steps(first_epoch), 0, nullptr, {}}, &kEmptyPlace}};
  }
  std::vector<Cohort> all;
  for (const auto& [place, members] : subscriptions.places()) {
    const Subscription& first = subscriptions.at(members.begin()->first);
    if (waits_for_plan(first)) continue;
    all.push_back({upcoming_of(first), &members, place.left_behind});
  }
  return all;
}

std::optional<BatchId> FeedParts::demand_of(const Subscription& of) const {
  if (!of.has_credit() || waits_for_plan(of)) return {};
  const auto id = next_of(of);
  if (!id || !scheduler.is_missing(*id)) return {};
  return may_take(of, *id) && !leads_too_far(of) ? id : std::nullopt;
}

/// What is refused to one is so to all that want it.
std::vector<std::pair<BatchId, SubscriptionKey>> FeedParts::demands(std::size_t turn) const {
  std::vector<std::pair<BatchId, SubscriptionKey>> all;
  for (const auto& [wanted, wanting] : subscriptions.admission().wanted()) {
    if (!scheduler.is_missing(wanted)) continue;
    for (const SubscriptionKey& key : wanting.all) {
      const auto id = demand_of(subscriptions.at(key));
      if (!id) continue;
      all.emplace_back(*id, key);
      break;
    }
  }
  if (all.empty()) return all;
  const auto first = static_cast<std::ptrdiff_t>(turn % all.size());
  std::rotate(all.begin(), all.begin() + first, all.end());
  return all;
}

bool FeedParts::waits_for_plan(const Subscription& subscription) const {
  if (subscription.is_over()) return false;
  return !subscription.is_served() || !plans.has(subscription.cursor.epoch());
}

bool FeedParts::may_take(const Subscription& subscription, const BatchId& id) const {
  const auto slot = slots().find(id);
  const bool is_held = slot && slots().is_held(*slot);
  return subscriptions.admission().may_take(*subscription.index.admission, slots().held(), is_held);
}

bool FeedParts::leads_too_far(const Subscription& subscription) const {
  if (settings.max_lead == 0 || subscription.in_queue()) return false;
  const auto slowest = subscriptions.slowest();
  if (!slowest) return false;
  const auto lead = steps_ahead(subscription, *slowest);
  return lead && *lead >= settings.max_lead;
}

std::optional<std::uint64_t> FeedParts::steps_ahead(const Subscription& one,
                                                    const Position& of) const {
  const auto [epoch, step] = of;
  const std::uint64_t epochs = one.cursor.epoch().value - epoch.value;
  if (one.cursor.epoch() < epoch) return {};
  const std::uint64_t here = one.cursor.step().value + epochs * plans.steps(epoch);
  if (here < step.value) return {};
  return here - step.value;
}

bool FeedParts::is_over(const Subscription& subscription, const EpochOutline& epoch) const {
  if (!subscription.rehearsals.empty() || epoch.goes_on) return false;
  if (!subscription.in_queue()) return subscription.cursor.at_end(epoch.steps());
  return desk.is_over_for(subscription.owner(), subscription.cursor.epoch(), epoch.batches,
                          subscription.asked);
}

std::optional<Step> FeedParts::oldest_step() const {
  std::optional<Step> oldest;
  for (const auto& [key, subscription] : subscriptions.all()) {
    if (!subscription.is_served() || subscription.in_queue()) continue;
    const Step own = subscription.oldest_step();
    if (!oldest || own < *oldest) oldest = own;
  }
  const auto queued = queued_step();
  if (!queued || !oldest) return queued ? queued : oldest;
  return std::min(*oldest, *queued);
}

std::optional<Step> FeedParts::queued_step() const {
  if (!desk.is_open()) return {};
  // What no worker has had stays for those that come.
  const std::uint64_t undone = desk.queue().first_undone();
  const bool in_use = undone != 0 || !desk.queue().out().empty() ||
                      std::any_of(subscriptions.all().begin(), subscriptions.all().end(),
                                  [](const auto& each) { return each.second.in_queue(); });
  if (!in_use) return {};
  return Step{undone / settings.plan.world};
}

Step FeedParts::live_start(const Subscription& newcomer) const {
  const Job job = newcomer.job();
  if (job.ranks > 1) {
    for (const auto& [key, other] : subscriptions.all()) {
      const bool with_it = other.job() == job && other.is_served() && key != newcomer.key();
      if (with_it && other.terms.anywhere) return other.terms.first_step;
    }
  }
  return live->first_asked_for();
}

/// Its next batch is in no slot, or none may be taken for it, until other clients have released
/// some.
bool FeedParts::lacks_slot(const Subscription& subscription, const BatchId& next) const {
  return !may_take(subscription, next) || (!slots().find(next) && slots().held() == slots().size());
}

WaitingFor FeedParts::waiting_for(const Subscription& subscription) const {
  if (subscription.is_over() || life.has_ended()) return WaitingFor::none;
  const auto daemon = subscription.says_it_waits() ? WaitingFor::daemon : WaitingFor::none;
  if (waits_for_plan(subscription)) return daemon;
  const auto id = next_of(subscription);
  if (!id && live) {
    if (!subscription.has_credit()) return WaitingFor::client;
    return daemon == WaitingFor::daemon ? WaitingFor::step : WaitingFor::none;
  }
  if (!id || leads_too_far(subscription)) return WaitingFor::none;
  const bool looks_on = subscription.looks_on() && !subscription.leases.empty();
  if (subscription.has_credit() && (!looks_on || subscription.client.inline_batches)) {
    const bool waits_for_slot = daemon == WaitingFor::daemon && lacks_slot(subscription, *id);
    return waits_for_slot ? WaitingFor::slot : daemon;
  }
  // What it releases leaves a slot, unless its batches are in none.
  const bool could_be_had =
      !subscription.client.inline_batches || slots().find(*id) || slots().held() < slots().size();
  return could_be_had ? WaitingFor::client : WaitingFor::none;
}

std::size_t FeedParts::slots_to_set() const {
  const Subscriptions& all = subscriptions.all();
  const auto waiting = std::count_if(all.begin(), all.end(), [](const auto& entry) {
    return entry.second.waiting.now() == WaitingFor::slot;
  });
  // Of which one goes round.
  const std::size_t entitled = subscriptions.admission().slots_needed() - 1;
  return std::max(2 * entitled + 2, slots().size() + static_cast<std::size_t>(waiting) + 1);
}

bool FeedParts::releases_may_join(const Subscription& subscription) const {
  if (subscription.in_queue() || desk.keeps_ledger()) return false;
  return subscription.client.inline_batches || 2 * slots().held() <= slots().size();
}

bool FeedParts::waits_for_clients(const Subscription& subscription) const {
  if (subscription.is_over() || waits_for_plan(subscription)) return false;
  const auto id = next_of(subscription);
  if (!subscription.says_it_waits()) return false;
  if (!id) return live || (subscription.in_queue() && subscription.leases.empty());
  return subscription.has_credit() &&
         (leads_too_far(subscription) || lacks_slot(subscription, *id));
}

std::string who(const Subscription& subscription) {
  if (subscription.terms.mode != wire::Mode::sharded) return describe(subscription.client);
  return fmt::format("rank {} of {}, {}", subscription.terms.rank, subscription.terms.ranks,
                     describe(subscription.client));
}

std::string reason_to_wait(const FeedParts& feed, const Subscription& subscription,
                           WaitingTimes::Time now) {
  const Epoch epoch = subscription.cursor.epoch();
  if (feed.life.has_ended()) return feed.life.why()->message;
  if (!feed.plans.has(epoch)) {
    return feed.plans.reason_to_wait(epoch, feed.plan_needs().stood_in.size(), feed.most_plans());
  }
  if (subscription.is_over()) return "nothing: its epochs are over";
  const auto id = feed.next_of(subscription);
  if (subscription.in_queue() && feed.desk.beginning()) {
    return fmt::format("the journal's new file, which is being written to its disk for epoch {}",
                       feed.desk.beginning()->value);
  }
  if (!id && subscription.in_queue() && !feed.live) {
    return fmt::format("the end of epoch {}: batches are not done yet, {}", epoch.value,
                       holders_of_slots(feed, now));
  }
  if (!id && feed.live) return feed.live->reason_to_wait(now);
  if (!id) return "a batch that is about to come";
  if (!subscription.has_credit()) {
    return fmt::format("this client's releases: it holds {} batches, as many as its window allows",
                       subscription.leases.size());
  }
  if (feed.leads_too_far(subscription)) {
    return fmt::format("the slowest client, of which it is max_lead = {} steps ahead: {}",
                       feed.settings.max_lead, slowest_client(feed));
  }
  const auto slot = feed.scheduler.cache().find(*id);
  if (slot && feed.scheduler.cache().state(*slot) == SlotState::filling) {
    return fmt::format("batch {} of epoch {}, which is being assembled", id->index.value,
                       id->epoch.value);
  }
  if (const auto straggler = feed.scheduler.stragglers().awaited()) {
    return fmt::format("{}, for a moment: it is behind, and its next batches would leave the slots",
                       describe(feed.subscriptions.at(*straggler).client));
  }
  return fmt::format(
      "a slot: of {} slots {} are held, and some are kept for clients that have "
      "nothing; {}{}{}",
      feed.scheduler.cache().size(), feed.scheduler.cache().held(), holders_of_slots(feed, now),
      absent_ranks(feed), slots_wanted(feed));
}

}  // namespace batchwright
