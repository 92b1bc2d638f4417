// The part of Feed that says in words what a subscription waits for.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "daemon/delivery/feed.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

/// Who releases nothing for so long is said to.
constexpr std::chrono::seconds kStill{1};
/// Named in one text.
constexpr std::size_t kMostNamed = 8;

}  // namespace

std::string who(const Subscription& subscription) {
  if (subscription.terms.mode != wire::Mode::sharded) return describe(subscription.client);
  return fmt::format("rank {} of {}, {}", subscription.terms.rank, subscription.terms.ranks,
                     describe(subscription.client));
}

/// Who stands still for longest comes first.
std::string Feed::who_holds_slots() const {
  std::vector<const Subscription*> holders;
  for (const auto& [key, subscription] : subscriptions_.all()) {
    if (!subscription.leases.empty()) holders.push_back(&subscription);
  }
  std::sort(holders.begin(), holders.end(),
            [](const auto* one, const auto* other) { return one->moved < other->moved; });
  const std::size_t others = holders.size() - std::min(holders.size(), kMostNamed);
  holders.resize(holders.size() - others);
  const auto now = Clock::now();
  std::string text;
  for (const Subscription* holder : holders) {
    text +=
        fmt::format("{}{} holds {}", text.empty() ? "" : ", ", who(*holder), holder->leases.size());
    const auto still = std::chrono::duration_cast<std::chrono::seconds>(now - holder->moved);
    if (still >= kStill) text += fmt::format(" and has released none for {} s", still.count());
  }
  if (others != 0) text += fmt::format(", and {} others", others);
  if (const std::string left = held_over().describe(); !left.empty()) {
    text += (text.empty() ? "" : ", ") + left;
  }
  return text.empty() ? "nobody holds any" : text;
}

/// Ranks that are to come, of jobs of which some are here; empty when all are.
std::string Feed::who_is_absent() const {
  std::set<Job> jobs;
  for (const auto& [key, subscription] : subscriptions_.all()) jobs.insert(subscription.job());
  std::string text;
  for (const Job& job : jobs) {
    if (const std::size_t absent = subscriptions_.roster().absent(job); absent != 0) {
      text += fmt::format("; {} ranks of a job of {} are to come", absent, job.ranks);
    }
  }
  return text;
}

std::string Feed::slowest_client() const {
  for (const auto& [key, subscription] : subscriptions_.all()) {
    const Places::Position here{subscription.cursor.epoch(), subscription.cursor.step()};
    const bool counts = subscription.is_served() && !subscription.in_queue();
    if (counts && subscriptions_.places().slowest() == here) return who(subscription);
  }
  return "nobody";
}

std::string Feed::reason_to_wait(const Subscription& subscription) const {
  const Epoch epoch = subscription.cursor.epoch();
  if (failure_) return failure_->message;
  if (!plans_.has(epoch)) {
    return plans_.reason_to_wait(epoch, plan_needs().stood_in.size(), most_plans());
  }
  if (subscription.is_over()) return "nothing: its epochs are over";
  const auto id = next_of(subscription);
  if (subscription.in_queue() && desk_.beginning()) {
    return fmt::format("the journal's new file, which is being written to its disk for epoch {}",
                       desk_.beginning()->value);
  }
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
    return fmt::format("the slowest client, of which it is max_lead = {} steps ahead: {}",
                       settings_.max_lead, slowest_client());
  }
  const auto slot = slots().find(*id);
  if (slot && slots().state(*slot) == SlotState::filling) {
    return fmt::format("batch {} of epoch {}, which is being assembled", id->index.value,
                       id->epoch.value);
  }
  if (const auto straggler = scheduler_.stragglers().awaited()) {
    return fmt::format("{}, for a moment: it is behind, and its next batches would leave the slots",
                       describe(subscriptions_.at(*straggler).client));
  }
  return fmt::format(
      "a slot: of {} slots {} are held, and some are kept for clients that have "
      "nothing; {}{}{}",
      slots().size(), slots().held(), who_holds_slots(), who_is_absent(), slots_wanted());
}

/// Where there are fewer slots than all that are here need, some wait for the others to be done.
std::string Feed::slots_wanted() const {
  const std::size_t needed = subscriptions_.roster().slots_needed();
  if (needed <= slots().size()) return "";
  return fmt::format("; with {} slots all that are here could go on at once", needed);
}

}  // namespace batchwright
