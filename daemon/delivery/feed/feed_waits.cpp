// The part of Feed that sees to subscriptions that wait: what they are told, and the log.

#include "daemon/delivery/feed/feed.h"
#include "daemon/delivery/feed/wait_reason.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

}  // namespace

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
}

void Feed::note_waiting(const SubscriptionKey& key, Subscription& subscription) {
  subscription.waiting.become(view().waiting_for(key, subscription), Clock::now());
}

WaitedSeconds Feed::waited(WaitingTimes::Time now) const {
  WaitedSeconds sum = waits_.before();
  for (const auto& [key, subscription] : subscriptions_.all()) {
    sum.clients += subscription.waiting.daemon_seconds(now);
    sum.slots += subscription.waiting.slot_seconds(now);
    sum.daemon += subscription.waiting.client_seconds(now);
  }
  return sum;
}

std::uint64_t Feed::batches_behind(const Subscription& one, const Subscription& other) const {
  const Places::Position here{one.cursor.epoch(), one.cursor.step()};
  return view().steps_ahead(other, here).value_or(0) * one.cursor.share().count;
}

/// That a client waits may let it have what it was not given in reserve. What is on its way to the
/// client does not count as held: then it waits no more.
void Feed::waits(const SubscriptionKey& key, std::uint32_t holds) {
  Subscription* const found = subscriptions_.find(key);
  if (found == nullptr) return;
  Subscription& subscription = *found;
  subscription.speak();
  subscription.asked = subscription.leases.size() == holds;
  if (failure()) return;
  note(key, subscription);
  serve(key, subscription);
  settle_soon();
}

void Feed::ask(SessionId session, const wire::Ask& question) {
  const SubscriptionKey key{session, SubscriptionNumber{question.subscription()}};
  waits(key, question.holds());
  const Subscription* const found = subscriptions_.find(key);
  if (found == nullptr || question.quiet()) return;
  wire::WaitingT answer;
  answer.subscription = question.subscription();
  const auto now = Clock::now();
  const auto waits_for = waits_for_file_system();
  answer.reason = waits_for && now - waits_for->since >= LongWaits::kLook
                      ? describe(*waits_for, now)
                      : reason_to_wait(view(), *found, now);
  ports_.send(session, encode(std::move(answer)));
}

/// Looks once a second, while subscriptions are here, for waits that get long.
void Feed::watch() {
  if (subscriptions_.all().empty() || loop_.is_set(FeedLoop::Alarm::long_waits)) return;
  loop_.set(FeedLoop::Alarm::long_waits, Clock::now() + LongWaits::kLook, [this] {
    look_at_waits(Clock::now());
    watch();
  });
}

/// Looks once a second, while something is under way, whether a file system still answers.
void Feed::watch_file_systems() {
  if (loop_.is_set(FeedLoop::Alarm::blockage)) return;
  loop_.set(FeedLoop::Alarm::blockage, Clock::now() + LongWaits::kBlockLook, [this] {
    const auto now = Clock::now();
    const auto waits_for = waits_for_file_system();
    const auto news = waits_.look(waits_for, now);
    if (news.is_over) {
      const auto took = std::chrono::duration_cast<std::chrono::seconds>(now - news.is_over->since);
      ports_.log.note<Event::feed_unblocked>(name(), news.is_over->by, took.count());
    }
    if (news.is_blocked) {
      ports_.log.note<Event::feed_blocked>(name(), describe(*blockage(), now));
    }
    const bool writes = desk_.writer() != nullptr && desk_.writer()->at_work();
    if (waits_for || writes || slots().count(SlotState::filling) != 0) watch_file_systems();
  });
}

/// The one that it has waited for longest.
std::optional<Blockage> Feed::waits_for_file_system() const {
  std::optional<Blockage> longest;
  const auto consider = [&longest](const std::optional<WaitingTimes::Time>& since, auto by) {
    if (since && (!longest || *since < longest->since)) longest = Blockage{by(), *since};
  };
  const auto dataset_name = [this] { return "dataset " + dataset().shards().front().string(); };
  consider(ports_.assembler.waits_for_pages(name()), dataset_name);
  consider(data_.asked_since, dataset_name);
  if (desk_.writer() == nullptr) return longest;
  if (const auto at_work = desk_.writer()->at_work()) {
    consider(at_work->since, [&at_work] { return at_work->name; });
  }
  return longest;
}

void Feed::look_at_waits(WaitingTimes::Time now) {
  if (failure()) return;
  Roster& roster = subscriptions_.roster();
  if (roster.expects_unknown() && waits_.is_gathering_over(now)) {
    roster.stop_expecting();
    settle();
  }
  for (const auto& [key, subscription] : subscriptions_.all()) {
    const bool waits = view().waits_for_clients(key, subscription);
    const auto seconds = waits_.note(key, waits, subscription.delivered, now);
    if (!seconds) continue;
    ports_.log.note<Event::long_wait>(name(), who(subscription), seconds->count(),
                                      reason_to_wait(view(), subscription, now));
  }
}

}  // namespace batchwright
