#include "daemon/delivery/feed/core/wait_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

namespace batchwright {
namespace {

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
  if (!id && subscription.in_queue()) {
    return fmt::format("the end of epoch {}: batches are not done yet, {}", epoch.value,
                       holders_of_slots(feed, now));
  }
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
