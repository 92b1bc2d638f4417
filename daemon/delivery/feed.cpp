#include "daemon/delivery/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace batchwright {
namespace {

std::string mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / 1048576); }

/// Leases count from the microseconds since 1970 at which the daemon began: above those of every
/// daemon before it, also of one whose journal a power cut has shortened.
std::uint64_t first_lease() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

Feed::Feed(std::uint32_t number, FeedSettings settings, FeedResources resources, FeedPorts ports)
    : number_(number),
      settings_(std::move(settings)),
      resources_(std::move(resources)),
      ports_(std::move(ports)),
      style_(make_style()),
      slots_(std::make_shared<SlotGeneration>(number, std::move(resources_.arena), ports_.memory)),
      generations_{slots_},
      plan_seconds_(resources_.first_epoch.seconds),
      grace_(ports_.loop),
      patience_(ports_.loop),
      next_lease_(first_lease()) {
  if (resources_.journal) next_lease_ = std::max(next_lease_, resources_.journal->next_lease());
  contents_[first_epoch().epoch] = first_epoch().fingerprint.data;
  if (resources_.journal) contents_[queue().epoch()] = resources_.journal->fingerprint().data;
  // A queue that was in this epoch when its data grew goes on with what they were.
  if (contents_.at(first_epoch().epoch) == first_epoch().fingerprint.data) {
    epochs_.planned(resources_.first_epoch);
  }
  counters_.add(FeedCounter::epochs_planned);
}

FeedState Feed::state() const {
  if (failure_) return FeedState::failed;
  return has_first_batch_ ? FeedState::serving : FeedState::starting;
}

std::shared_ptr<const BatchStyle> Feed::make_style() const {
  return std::make_shared<const BatchStyle>(BatchStyle{
      settings_.name, settings_.layout, settings_.padding_value, settings_.on_corrupt, times_});
}

void Feed::start() {
  const EpochSource& first = first_epoch();
  ports_.log.note<Event::feed_opened>(name(), resources_.snapshot->sequences(), first.plan.steps(),
                                      first.plan.world(), to_string(first.fingerprint));
  ports_.log.note<Event::arena_reserved>(name(), mib(arena().bytes()), settings_.slots,
                                         mib(arena().slot_bytes()), to_string(arena().pinned()));
  if (resources_.journal) {
    ports_.log.note<Event::queue_resumed>(name(), queue().epoch().value, queue().done_count(),
                                          queue().out().size());
    work().keep_all(WorkQueue::Time::clock::now() + settings_.queue_grace);
    await_returns();
  }
  if (!epochs_.find(first.epoch)) request_plan();
  prefetch();
}

wire::FeedInfoT Feed::info() const {
  wire::FeedInfoT info;
  info.name = settings_.name;
  info.world = settings_.plan.world;
  info.layout = settings_.layout;
  info.sequences = resources_.snapshot->sequences();
  for (const FieldSpec& field : resources_.snapshot->schema().fields) {
    auto entry = std::make_unique<wire::FieldInfoT>();
    entry->name = field.name;
    entry->kind = field.kind;
    entry->dtype = field.dtype;
    entry->shape = field.shape;
    entry->categories = field.categories;
    info.fields.push_back(std::move(entry));
  }
  return info;
}

const Arena* Feed::find_arena(std::uint32_t number) const {
  for (const auto& generation : generations_) {
    const auto there = generation.lock();
    if (there && there->number == number) return there->arena.get();
  }
  return nullptr;
}

void Feed::unsubscribe(SessionId session, std::uint32_t number) {
  const auto found = subscriptions_.find({session, number});
  if (found == subscriptions_.end()) return;
  leave(found->second, false);
  subscriptions_.erase(found);
  after_leaving();
}

void Feed::drop_session(SessionId session, bool may_return) {
  const auto first = subscriptions_.lower_bound({session, 0});
  const auto last = subscriptions_.upper_bound({session, UINT32_MAX});
  if (first == last) return;
  for (auto it = first; it != last; ++it) leave(it->second, may_return);
  subscriptions_.erase(first, last);
  after_leaving();
}

void Feed::leave(Subscription& subscription, bool may_return) {
  keep_waited(subscription);
  for (const auto& [lease, slot] : subscription.leases) {
    if (slot) give_back(*slot);
    if (subscription.in_queue() && !may_return) work().come_back(lease);
  }
  subscription.leases.clear();
  if (!subscription.in_queue() || !may_return) return;
  work().keep(subscription.owner(), WorkQueue::Time::clock::now() + settings_.queue_grace);
  await_returns();
}

void Feed::after_leaving() {
  needy_.reset();
  forget_epochs();
  pump();
}

/// Batches of a client that may come back are not given to others at once: it may have done them.
void Feed::await_returns() {
  if (retired_) return;
  const auto next = work().next_return();
  if (!next) return;
  grace_.expires_at(*next);
  grace_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
    if (error || alive.expired()) return;
    if (work().end_keeping(grace_.expiry())) pump();
    await_returns();
  });
}

void Feed::release(SessionId session, const wire::Release& release) {
  const auto found = subscriptions_.find({session, release.subscription()});
  for (const std::uint64_t lease : *release.leases()) {
    const bool known = found != subscriptions_.end() && found->second.leases.contains(lease);
    counters_.add(known ? FeedCounter::releases : FeedCounter::releases_unknown);
    if (known) release_lease(found->second, lease);
  }
  if (found != subscriptions_.end() && found->second.leases.empty()) found->second.had_none = true;
  needy_.reset();
  if (found == subscriptions_.end() || failure_) return;
  if (found->second.in_queue()) advance_queue();
  serve(found->first, found->second);
  pump_soon();
}

void Feed::release_lease(Subscription& subscription, std::uint64_t lease) {
  const auto held = subscription.leases.find(lease);
  if (held->second) give_back(*held->second);
  subscription.leases.erase(held);
  const QueueOwner owner = subscription.owner();
  if (subscription.in_queue() && work().done(lease, owner)) {
    written(note_done(subscription.client, lease, owner));
  } else if (resources_.ledger) {
    written(resources_.ledger->released(subscription.client, lease, false));
  }
}

/// A journal or ledger with a gap would be worse than none.
bool Feed::written(const Result<void>& result) {
  if (!result) fail(result.error());
  return static_cast<bool>(result);
}

void Feed::give_back(const SlotRef& slot) {
  needy_.reset();
  if (!slot.of->cache.release(slot.index) || !settings_.poison) return;
  slot.of->cache.retire(slot.index);
  ++under_way_;
  ports_.assembler.poison(slot.of->arena->slot(slot.index), [this, slot] {
    boost::asio::post(ports_.loop, [this, slot] {
      --under_way_;
      slot.of->cache.abandon(slot.index);
      pump();
    });
  });
}

}  // namespace batchwright
