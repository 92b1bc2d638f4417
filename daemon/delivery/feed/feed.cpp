#include "daemon/delivery/feed/feed.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/delivery/feed/plans/plan_words.h"

namespace batchwright {
namespace {

/// Leases count from the microseconds since 1970 at which the daemon began: above those of every
/// daemon before it, also of one whose journal a power cut has shortened.
LeaseNumber first_lease() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count())};
}

std::string describe_pages(const Arena& arena) {
  const std::string size =
      arena.pages() == PageKind::small ? "" : fmt::format("huge ({}), ", to_string(arena.pages()));
  if (arena.pinned() != PinState::none) return size + std::string(to_string(arena.pinned()));
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return fmt::format("{}not locked: this process may lock {} (LimitMEMLOCK=, ulimit -l)", size,
                     in_mib(limit.rlim_cur));
}

/// Takes all of the resources but the data. Where it was left to the feed how many slots it has,
/// its arena tells.
FeedParts make_parts(ArenaNumber number, FeedSettings settings, FeedResources& resources,
                     const FeedPorts& ports) {
  settings.slots = resources.arena->slots();
  const SchedulerLimits limits{ports.assembly_threads, settings.patience};
  auto slots = std::make_shared<SlotGeneration>(number, std::move(resources.arena), ports.memory,
                                                settings.name);
  QueueDesk desk(std::move(resources.queue), std::move(resources.journal),
                 std::move(resources.ledger), first_lease());
  const FeedData& data = resources.data;
  const std::uint64_t sequences = data.snapshot ? data.snapshot->sequences() : 0;
  return {std::move(settings),
          std::move(slots),
          limits,
          std::move(desk),
          data.first_epoch.source->epoch,
          sequences};
}

}  // namespace

Feed::Feed(ArenaNumber number, FeedSettings settings, FeedResources resources, FeedPorts ports)
    : number_(number),
      parts_(make_parts(number, std::move(settings), resources, ports)),
      data_(std::move(resources.data)),
      ports_(std::move(ports)),
      style_(make_style(std::make_shared<StageTimes>())),
      loop_(ports_.loop) {
  write_records();
  if (parts_.desk.is_open()) {
    // A queue that was in the first epoch when its data grew goes on with what they were.
    parts_.plans.decide(queue().epoch(), parts_.desk.journal().fingerprint().data);
  }
  parts_.plans.begin(data_.first_epoch);
  parts_.note_plans();
  counters_.add(FeedCounter::epochs_planned);
}

std::shared_ptr<const BatchStyle> Feed::make_style(std::shared_ptr<StageTimes> times) const {
  return std::make_shared<const BatchStyle>(BatchStyle{
      parts_.settings.name, parts_.settings.layout, parts_.settings.padding,
      parts_.settings.on_corrupt, std::move(times), parts_.settings.casts, parts_.settings.recipe});
}

void Feed::start() {
  const EpochSource& first = first_epoch();
  ports_.log.note<Event::feed_opened>(
      name(), describe_sequences(data_.first_epoch, parts_.settings.plan), first.plan.steps(),
      first.plan.world(), to_string(first.fingerprint));
  if (!data_.why_not_newer.empty()) {
    ports_.log.note<Event::growth_left_out>(name(), first.epoch.value, snapshot().sequences(),
                                            data_.why_not_newer);
  }
  if (const std::string warning = lock_warning(dataset()); !warning.empty()) {
    ports_.log.note<Event::dataset_not_locked>(name(), warning);
  }
  ports_.log.note<Event::arena_reserved>(name(), in_mib(arena().bytes()), parts_.settings.slots,
                                         in_mib(arena().slot_bytes()), describe_pages(arena()));
  if (!data_.few_slots.empty()) ports_.log.note<Event::slots_few>(name(), data_.few_slots);
  if (making_bytes() != 0) {
    const Recipe& recipe = *parts_.settings.recipe;
    ports_.log.note<Event::making_reserved>(
        name(), in_mib(making_bytes()),
        in_mib((data_.claimed_for_sound() - recipe.kept_bytes()) /
               parts_.settings.assembly_threads),
        parts_.settings.assembly_threads, in_mib(recipe.kept_bytes()),
        in_mib(bytes_of(data_.row_cache)));
  }
  if (const std::string note = plan_note(parts_.settings.plan); !note.empty()) {
    ports_.log.note<Event::plan_noted>(name(), note);
  }
  if (parts_.desk.is_open()) {
    const QueueJournal& journal = parts_.desk.journal();
    if (const auto lost = journal.losses(); lost.records != 0) {
      ports_.log.note<Event::journal_lost>(name(), journal.path(), lost.records, lost.batches);
    }
    ports_.log.note<Event::queue_resumed>(name(), queue().epoch().value, queue().done_count(),
                                          queue().out().size());
    parts_.desk.keep_all(WorkQueue::Time::clock::now() + parts_.settings.queue_grace);
    await_returns();
  }
  if (!parts_.plans.has(first.epoch)) request_plan();
  assemble_ahead();
}

wire::FeedInfoT Feed::info() const {
  wire::FeedInfoT info;
  info.name = parts_.settings.name;
  info.world = parts_.settings.plan.world;
  info.layout = parts_.settings.layout;
  info.sequences = data_.snapshot->sequences();
  for (const FieldSpec& field : row_schema(*data_.snapshot, parts_.settings.recipe.get()).fields) {
    auto entry = std::make_unique<wire::FieldInfoT>();
    entry->name = field.name;
    entry->kind = field.kind;
    entry->dtype = cast_dtype(parts_.settings.casts, field);
    entry->shape = field.shape;
    entry->categories = field.categories;
    info.fields.push_back(std::move(entry));
  }
  return info;
}

const Arena* Feed::find_arena(ArenaNumber number) const {
  for (const auto& generation : parts_.scheduler.generations()) {
    if (generation->number == number) return generation->arena.get();
  }
  return nullptr;
}

void Feed::unsubscribe(SessionId session, SubscriptionNumber number) {
  const SubscriptionKey key{session, number};
  if (!parts_.subscriptions.contains(key)) return;
  leave(key, {});
  after_leaving();
}

std::size_t Feed::drop_session(SessionId session, Departure departure) {
  const std::vector<SubscriptionKey> keys = parts_.subscriptions.keys_of(session);
  if (keys.empty()) return 0;
  for (const SubscriptionKey& key : keys) leave(key, departure);
  after_leaving();
  return parts_.subscriptions.orphaned().slots_of(session);
}

void Feed::let_go(SessionId session) {
  const std::vector<SlotRef> slots = parts_.subscriptions.release_orphaned(session);
  for (const SlotRef& slot : slots) give_back(slot);
  if (!slots.empty()) pump();
}

void Feed::stop_serving(SessionId session) {
  for (const SubscriptionKey& key : parts_.subscriptions.keys_of(session)) {
    const auto one = parts_.subscriptions.edit(key);
    one->finish();
    for (auto& [lease, batch] : one->leases) {
      if (batch.slot) give_back(*std::exchange(batch.slot, std::nullopt));
    }
  }
  after_leaving();
}

void Feed::leave(const SubscriptionKey& key, Departure departure) {
  const Subscription& subscription = parts_.subscriptions.at(key);
  parts_.waited_before.add(subscription.waiting, WaitingTimes::Time::clock::now());
  std::vector<SlotRef> kept;
  bool begun = departure.died;
  for (const auto& [lease, batch] : subscription.leases) {
    if (batch.slot && departure.lives) kept.push_back(*batch.slot);
    if (batch.slot && !departure.lives) give_back(*batch.slot);
    if (!subscription.in_queue()) continue;
    if (!has_ticket(batch)) {
      parts_.desk.come_back(lease);  // the client never had it
      continue;
    }
    if (departure.may_return) continue;
    if (!begun) {
      parts_.desk.come_back(lease);
      continue;
    }
    const auto undone =
        parts_.desk.died_with(subscription.owner(), lease, parts_.settings.queue_attempts);
    if (!written(undone) || !*undone) continue;  // that one was done
    note_undone(**undone);
    begun = false;
  }
  parts_.subscriptions.orphan(subscription.client, std::move(kept));
  if (subscription.in_queue() && departure.may_return) {
    parts_.desk.keep(subscription.owner(),
                     WorkQueue::Time::clock::now() + parts_.settings.queue_grace);
    await_returns();
  }
  parts_.scheduler.stragglers().forget(key);
  parts_.subscriptions.remove(key);
}

void Feed::after_leaving() {
  forget_epochs();
  pump();
}

/// Batches of a client that may come back are not given to others at once: it may have done them.
void Feed::await_returns() {
  const auto next = parts_.desk.next_return();
  if (!next) return;
  loop_.set(FeedLoop::Alarm::returns, *next, [this, until = *next] {
    const auto returned = parts_.desk.end_keeping(until, parts_.settings.queue_attempts);
    if (!written(returned)) return;
    for (const QueueDesk::Undone& batch : returned->undone) note_undone(batch);
    if (returned->any) pump();
    await_returns();
  });
}

void Feed::release(SessionId session, const wire::Release& release) {
  const SubscriptionKey key{session, SubscriptionNumber{release.subscription()}};
  const Subscription* const found = parts_.subscriptions.find(key);
  if (found == nullptr) {
    return counters_.add(FeedCounter::releases_unknown, release.leases()->size());
  }
  const bool in_queue = found->in_queue();
  if (in_queue && release.keeps() && release.undone()) return end_but(key, release);
  release_leases(*parts_.subscriptions.edit(key), release);
  if (failure()) return;
  if (in_queue) advance_queue();
  serve(key);
  settle_soon();
  const Epoch epoch = queue().epoch();  // whose end others may wait for
  const bool others_wait = release.undone() || queue().exhausted(batches_of(epoch));
  if (in_queue && others_wait) pump_soon();
}

void Feed::release_leases(Subscription& subscription, const wire::Release& release) {
  for (const std::uint64_t number : *release.leases()) {
    const LeaseNumber lease{number};
    if (!subscription.leases.contains(lease)) {
      counters_.add(FeedCounter::releases_unknown);
      continue;
    }
    subscription.speak();
    if (release.keeps()) {
      written(parts_.desk.done(holder_of(subscription), lease));
      continue;
    }
    counters_.add(FeedCounter::releases);
    release_lease(subscription, lease, release.undone());
  }
  if (failure()) return;
  subscription.moved = WaitingTimes::Time::clock::now();
  const std::chrono::microseconds waited(release.waited_us());
  if (waited.count() != 0) subscription.waiting.add_short(waited, subscription.moved);
  subscription.note_empty_handed();
  if (release.undone() && subscription.in_queue()) step_back(subscription);
}

/// A worker that alone holds what is left of an epoch is told of its end. When it gives that back
/// undone, the epoch goes on, and may have no other worker.
void Feed::step_back(Subscription& subscription) {
  if (!subscription.is_served() || subscription.cursor.epoch() <= queue().epoch()) return;
  subscription.cursor = Cursor(subscription.cursor.share(), queue().epoch(), Step{0});
  subscription.stage = Subscription::Stage::in_epoch;
  if (subscription.epochs_left != 0) ++subscription.epochs_left;
}

/// A worker that was closed keeps what its program holds. What it was sent ahead, and has not
/// begun, is for others at once.
void Feed::end_but(const SubscriptionKey& key, const wire::Release& held) {
  const std::set<std::uint64_t> stays(held.leases()->begin(), held.leases()->end());
  {
    const auto one = parts_.subscriptions.edit(key);
    end_leases_but(*one, stays);
    one->finish();
  }
  after_leaving();
}

void Feed::end_leases_but(Subscription& subscription, const std::set<std::uint64_t>& stays) {
  for (auto entry = subscription.leases.begin(); entry != subscription.leases.end();) {
    if (stays.contains(entry->first.value)) {
      ++entry;
      continue;
    }
    if (entry->second.slot) give_back(*entry->second.slot);
    parts_.desk.come_back(entry->first);
    entry = subscription.leases.erase(entry);
  }
}

void Feed::release_lease(Subscription& subscription, LeaseNumber lease, bool undone) {
  const auto held = subscription.leases.find(lease);
  if (held->second.slot) give_back(*held->second.slot);
  subscription.leases.erase(held);
  ++subscription.released;
  if (!undone) {
    written(parts_.desk.released(holder_of(subscription), lease));
    return;
  }
  const auto batch =
      parts_.desk.gave_up(holder_of(subscription), lease, parts_.settings.queue_attempts);
  if (written(batch) && *batch) note_undone(**batch);
}

/// A batch that again and again is not done may be one that no worker can do.
void Feed::note_undone(const QueueDesk::Undone& batch) {
  counters_.add(FeedCounter::queue_returns);
  const std::uint64_t epoch = queue().epoch().value;
  if (batch.set_aside) {
    counters_.add(FeedCounter::queue_set_aside);
    ports_.log.note<Event::queue_batch_set_aside>(name(), batch.index.value, epoch, batch.times);
    return advance_queue();
  }
  if (batch.times < WorkQueue::kOften) return;
  ports_.log.note<Event::queue_batch_returned>(name(), batch.index.value, epoch, batch.times);
}

QueueDesk::Holder Feed::holder_of(const Subscription& subscription) {
  return {subscription.client, subscription.number, subscription.owner(), subscription.in_queue()};
}

void Feed::give_back(const SlotRef& slot) {
  if (!slot.of->cache.release(slot.index)) return;
  due_.slots = true;
  if (!parts_.settings.poison) return;
  slot.of->cache.retire(slot.index);
  ports_.assembler.poison(slot.of->arena->slot(slot.index), loop_.brought_back([this, slot] {
    slot.of->cache.abandon(slot.index);
    due_.slots = true;
    settle();
  }));
}

}  // namespace batchwright
