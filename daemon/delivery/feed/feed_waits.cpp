// The part of Feed that sees to subscriptions that wait: what they are told, and the log.

#include "daemon/delivery/feed/core/wait_reason.h"
#include "daemon/delivery/feed/feed.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

/// A job that does not say how many of its ranks are on this host has so long to gather here.
constexpr std::chrono::seconds kGathering{5};

}  // namespace

void Feed::note_waiting(Subscription& subscription) {
  subscription.waiting.become(parts_.waiting_for(subscription), Clock::now());
}

/// That a client waits may let it have what it was not given in reserve. What is on its way to the
/// client does not count as held: then it waits no more.
void Feed::waits(const SubscriptionKey& key, std::uint32_t holds) {
  if (!parts_.subscriptions.contains(key)) return;
  {
    const auto one = parts_.subscriptions.edit(key);
    one->speak();
    one->asked = one->leases.size() == holds;
  }
  if (failure()) return;
  serve(key);
  settle_soon();
}

void Feed::ask(SessionId session, const wire::Ask& question) {
  const SubscriptionKey key{session, SubscriptionNumber{question.subscription()}};
  waits(key, question.holds());
  const Subscription* const found = parts_.subscriptions.find(key);
  if (found == nullptr || question.quiet()) return;
  wire::WaitingT answer;
  answer.subscription = question.subscription();
  const auto now = Clock::now();
  const auto waits_for = waits_for_file_system();
  answer.reason = waits_for && now - waits_for->since >= LongWait::kLook
                      ? describe(*waits_for, now)
                      : reason_to_wait(parts_, *found, now);
  ports_.send(session, encode(std::move(answer)));
}

/// Looks once a second, while subscriptions are here, for waits that get long.
void Feed::watch() {
  if (parts_.subscriptions.all().empty() || loop_.is_set(FeedLoop::Alarm::long_waits)) return;
  loop_.set(FeedLoop::Alarm::long_waits, Clock::now() + LongWait::kLook, [this] {
    look_at_waits(Clock::now());
    watch();
  });
}

/// Looks once a second, while something is under way, whether a file system still answers.
void Feed::watch_file_systems() {
  if (loop_.is_set(FeedLoop::Alarm::blockage)) return;
  loop_.set(FeedLoop::Alarm::blockage, Clock::now() + BlockageWatch::kLook, [this] {
    const auto now = Clock::now();
    const auto waits_for = waits_for_file_system();
    const auto news = blockage_.look(waits_for, now);
    if (news.is_over) {
      const auto took = std::chrono::duration_cast<std::chrono::seconds>(now - news.is_over->since);
      ports_.log.note<Event::feed_unblocked>(name(), news.is_over->by, took.count());
    }
    if (news.is_blocked) {
      ports_.log.note<Event::feed_blocked>(name(), describe(*blockage_.blockage(), now));
    }
    const bool writes = parts_.desk.writer() != nullptr && parts_.desk.writer()->at_work();
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
  if (parts_.desk.writer() == nullptr) return longest;
  if (const auto at_work = parts_.desk.writer()->at_work()) {
    consider(at_work->since, [&at_work] { return at_work->name; });
  }
  return longest;
}

void Feed::look_at_waits(WaitingTimes::Time now) {
  if (failure()) return;
  SlotAdmission& admission = parts_.subscriptions.admission();
  if (admission.expects_unknown() && now - parts_.last_subscribed >= kGathering) {
    admission.stop_expecting();
    settle();
  }
  for (const auto& [key, subscription] : parts_.subscriptions.all()) {
    const bool waits = parts_.waits_for_clients(subscription);
    const auto seconds =
        parts_.subscriptions.edit(key)->long_wait.note(waits, subscription.delivered, now);
    if (!seconds) continue;
    ports_.log.note<Event::long_wait>(name(), who(subscription), seconds->count(),
                                      reason_to_wait(parts_, subscription, now));
  }
}

}  // namespace batchwright
