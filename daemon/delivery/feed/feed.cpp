#include "daemon/delivery/feed/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "daemon/delivery/feed/plans/planner.h"

namespace batchwright {
namespace {

using Clock = WaitingTimes::Time::clock;

/// Leases count from the microseconds since 1970 at which the daemon began: above those of every
/// daemon before it, also of one whose journal a power cut has shortened.
LeaseNumber first_lease() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count())};
}

/// Takes all of the resources but data and files. Where it was left to the feed how many slots it
/// has, its arena tells.
FeedParts make_parts(ArenaNumber number, FeedSettings settings, FeedResources& resources,
                     const FeedPorts& ports) {
  settings.slots = resources.arena->slots();
  const SchedulerLimits limits{ports.assembly_threads, settings.patience};
  auto slots = std::make_shared<SlotGeneration>(number, std::move(resources.arena), ports.memory,
                                                settings.name);
  std::optional<std::string> ledger;
  if (resources.files.ledger) ledger = settings.name;
  QueueService desk(std::move(resources.queue), std::move(resources.journal), std::move(ledger),
                    first_lease());
  const FeedData& data = resources.data;
  const std::uint64_t sequences = data.snapshot ? data.snapshot->sequences() : 0;
  std::unique_ptr<LiveService> live;
  if (data.live) {
    live = std::make_unique<LiveService>(settings, data.live->outline().fingerprint.data, data.live,
                                         Clock::now(), resources.spooled.get());
    resources.spooled.reset();
    live->set_slot_bytes(slots->arena->slot_bytes());
    if (resources.files.record) live->record_behind(resources.files.record->sequences());
  }
  FeedParts parts{std::move(settings),
                  std::move(slots),
                  limits,
                  std::move(desk),
                  data.first_epoch.outline().epoch,
                  sequences};
  parts.live = std::move(live);
  return parts;
}

/// So much may lie in areas beside what the pool has: what is not accepted yet, and what is cut.
constexpr std::uint64_t kAreasToPool = 4;

std::uint64_t most_area_bytes(const FeedSettings& settings) {
  return settings.live ? kAreasToPool * settings.live->pool.pool_bytes : 0;
}

}  // namespace

Feed::Feed(ArenaNumber number, FeedSettings settings, FeedResources resources, FeedPorts ports)
    : number_(number),
      core_(make_parts(number, settings, resources, ports), resources.data.first_epoch,
            facts_of(resources.data, settings)),
      data_(std::move(resources.data)),
      areas_(number, most_area_bytes(core_.parts().settings)),
      ports_(std::move(ports)),
      style_(make_style(std::make_shared<StageTimes>())),
      steps_(RecordFiles{nullptr, nullptr, {}, std::move(resources.files.record)},
             [this](std::function<Written()> work) {
               loop_.at_record(std::move(work), [this](Written written) {
                 tell(StepsWritten{steps_.told(std::move(written))});
               });
             }),
      records_(std::move(resources.files),
               [this](std::function<Written()> work) {
                 loop_.at_files(std::move(work), [this](Written written) {
                   tell(records_.told(std::move(written)));
                 });
               }),
      loop_(ports_.loop) {}

/// The loop turns no more, so nothing else has the last records written, nor tells of one that was
/// not.
Feed::~Feed() {
  records_.put(core_.take_records());
  steps_.put(core_.take_steps());
  loop_.end();
  for (const auto& untold : {records_.untold(), steps_.untold()}) {
    if (!untold) continue;
    ports_.log.note<Event::feed_failed>(wire::EventT{}, name(), untold->message);
  }
}

std::shared_ptr<const BatchStyle> Feed::make_style(std::shared_ptr<StageTimes> times) const {
  const FeedSettings& own = settings();
  return std::make_shared<const BatchStyle>(BatchStyle{
      own.name, own.layout, own.padding, own.on_corrupt, std::move(times), own.casts, own.recipe});
}

void Feed::start() {
  if (is_live()) {
    start_live();
    return tell(Started{});
  }
  const EpochOutline first = data_.first_epoch.outline();
  ports_.log.note<Event::feed_opened>(name(),
                                      describe_sequences(data_.first_epoch, settings().plan),
                                      first.steps(), first.world, to_string(first.fingerprint));
  if (!data_.why_not_newer.empty()) {
    ports_.log.note<Event::growth_left_out>(name(), first.epoch.value, snapshot().sequences(),
                                            data_.why_not_newer);
  }
  if (const std::string warning = lock_warning(dataset()); !warning.empty()) {
    ports_.log.note<Event::dataset_not_locked>(name(), warning);
  }
  note_arena();
  if (!data_.few_slots.empty()) ports_.log.note<Event::slots_few>(name(), data_.few_slots);
  if (making_bytes() != 0) {
    const Recipe& recipe = *settings().recipe;
    ports_.log.note<Event::making_reserved>(
        name(), in_mib(making_bytes()),
        in_mib((data_.claimed_for_sound() - recipe.kept_bytes()) / settings().assembly_threads),
        settings().assembly_threads, in_mib(recipe.kept_bytes()),
        in_mib(bytes_of(data_.row_cache)));
  }
  if (const std::string note = plan_note(settings().plan); !note.empty()) {
    ports_.log.note<Event::plan_noted>(name(), note);
  }
  tell(Started{});
}

void Feed::tell(FeedEvent event) {
  const auto now = Clock::now();
  const EventLog::Turn part(ports_.log, name_of(event), name(), now);
  core_.on(std::move(event), now);
  loop_.soon([this] { turn(); });
}

/// Once for all that happens in a turn of the loop.
void Feed::turn() {
  const EventLog::Turn whole(ports_.log, "turn", name());
  loop_.call_gathered();
  while (core_.has_work()) {
    std::vector<FeedAction> actions;
    core_.decide(Clock::now(), actions);
    for (FeedAction& action : actions) {
      std::visit([this](auto& one) { carry_out(one); }, action);
    }
  }
  loop_.wake_for_each(core_.is_awaited());
  if (std::exchange(told_state_, state()) != state() && on_state_) on_state_();
}

void Feed::carry_out(const Send& action) {
  const auto began = Clock::now();
  ports_.send(action.session, action.message);
  if (action.is_ticket) stage_times().add(Stage::deliver, Clock::now() - began);
}

void Feed::carry_out(const SendBatch& action) {
  const Arena& memory = *action.slot.of->arena;
  const SlotIndex slot = action.slot.index;
  const std::size_t within = action.extent.offset - slot.value * memory.slot_bytes();
  ports_.send_batch(action.session, action.ticket,
                    memory.slot(slot).subspan(within, action.extent.size),
                    loop_.awaited([this, slot = action.slot, began = Clock::now()] {
                      stage_times().add(Stage::deliver, Clock::now() - began);
                      tell(BatchSent{slot});
                    }));
}

void Feed::carry_out(const Assemble& action) {
  const SlotScheduler::Assignment& next = action.assignment;
  stage_times().add(Stage::wait_for_slot, next.waited);
  watch_file_systems();
  auto done = loop_.gathered([this, next, data = action.data,
                              source = std::weak_ptr(action.source)](Result<AssembledBatch> batch) {
    if (const auto used = source.lock()) ports_.readahead.used(name(), used, next.id.index);
    const std::uint64_t brought_in = style_->times->brought_in_bytes();
    if (batch) return tell(BatchReady{next, data, brought_in, std::move(*batch)});
    tell(BatchFailed{next, data, brought_in, batch.error()});
  });
  ports_.assembler.submit(action.batches, style_, next.id.index,
                          next.slot.of->arena->slot(next.slot.index), std::move(done),
                          action.urgency);
}

void Feed::carry_out(const ReadAhead& action) {
  ports_.readahead.will_need(name(), action.source, action.index, style_->times);
}

void Feed::carry_out(WriteRecords& action) {
  watch_file_systems();
  records_.put(std::move(action.records));
}

void Feed::carry_out(RecordSteps& action) {
  watch_file_systems();
  steps_.put(std::move(action.steps));
}

void Feed::carry_out(const SetTimer& action) {
  loop_.set(action.timer, action.when, [this, timer = action.timer] { tell(TimerDue{timer}); });
}

void Feed::carry_out(const Poison& action) {
  const SlotRef& slot = action.slot;
  ports_.assembler.poison(slot.of->arena->slot(slot.index),
                          loop_.brought_back([this, slot] { tell(SlotPoisoned{slot}); }));
}

void Feed::carry_out(const Failed& action) {
  if (!is_transient(action.code) || !ports_.takes_over()) tell(NotReplaced{});
}

Result<void> Feed::subscribe(const ClientInfo& client, const wire::Subscribe& request) {
  SubscribeRequested event{client, {}};
  request.UnPackTo(&event.request);
  if (auto can = core_.check_subscribe(client, event.request); !can) return can;
  tell(std::move(event));
  return {};
}

void Feed::unsubscribe(SessionId session, SubscriptionNumber number) {
  tell(Unsubscribed{{session, number}});
}

void Feed::release(SessionId session, const wire::Release& release) {
  Released event{{session, SubscriptionNumber{release.subscription()}},
                 from_wire(release.leases()),
                 release.undone(),
                 release.keeps(),
                 std::chrono::microseconds(release.waited_us())};
  tell(std::move(event));
}

std::size_t Feed::drop_session(SessionId session, SessionEnd how) {
  areas_.forget(session);
  const bool produces = is_live() && parts().live->has_session(session);
  if (!produces && parts().subscriptions.keys_of(session).empty()) return 0;
  tell(SessionEnded{session, how});
  return parts().subscriptions.orphaned().slots_of(session);
}

void Feed::let_go(SessionId session) { tell(ArenaReleased{session}); }

void Feed::stop_serving(SessionId session) { tell(ProcessExited{session}); }

bool Feed::has_in_queue(SessionId session) const {
  const std::vector<SubscriptionKey> keys = parts().subscriptions.keys_of(session);
  return std::any_of(keys.begin(), keys.end(), [this](const SubscriptionKey& key) {
    return parts().subscriptions.at(key).in_queue();
  });
}

void Feed::waits(const SubscriptionKey& key, std::uint32_t holds) {
  tell(ProgramWaits{key, holds});
}

void Feed::ask(SessionId session, const wire::Ask& question) {
  const SubscriptionKey key{session, SubscriptionNumber{question.subscription()}};
  if (question.quiet()) return waits(key, question.holds());
  const auto now = Clock::now();
  const auto waits_for = waits_for_file_system();
  std::optional<std::string> blocked;
  if (waits_for && now - waits_for->since >= LongWait::kLook) blocked = describe(*waits_for, now);
  tell(ReasonAsked{key, question.holds(), std::move(blocked)});
}

void Feed::list_upcoming(SessionId session, const wire::ListUpcoming& question) {
  tell(UpcomingAsked{{session, SubscriptionNumber{question.subscription()}},
                     question.question(),
                     question.count()});
}

void Feed::adjust(const FeedSettings& wanted) {
  std::optional<LiveLimits> limits;
  if (wanted.live) limits = wanted.live->pool;
  tell(SettingsChanged{wanted, limits});
  style_ = make_style(style_->times);
}

void Feed::retire(const Error& error) {
  on_state_ = nullptr;
  loop_.silence();
  ports_.assembler.replace(name());  // a feed in its place may have another file system
  tell(Retired{error});
  turn();
}

std::vector<std::shared_ptr<const void>> Feed::resources() const {
  std::vector<std::shared_ptr<const void>> all{data_.tree_reader, data_.dataset, data_.snapshot,
                                               data_.live};
  for (auto& generation : parts().scheduler.generations()) all.push_back(std::move(generation));
  for (PlannedEpoch& epoch : parts().plans.all()) all.push_back(std::move(epoch.batches));
  return all;
}

wire::FeedInfoT Feed::info() const {
  wire::FeedInfoT info;
  info.name = name();
  info.world = settings().plan.world;
  info.layout = settings().layout;
  if (is_live()) {
    const LiveFeedSettings& live = *settings().live;
    info.live = std::make_unique<wire::LiveInfoT>();
    info.live->max_length = static_cast<std::uint32_t>(live.pool.max_length);
    info.live->max_bytes = live.pool.pool_bytes;
    info.live->allow_nan = live.allow_nan;
    info.live->joins = live.join.from;
    info.live->joined = static_cast<std::uint32_t>(live.join.fields.size());
  } else {
    info.sequences = data_.snapshot->sequences();
  }
  const Schema& schema =
      is_live() ? settings().live->schema : row_schema(*data_.snapshot, settings().recipe.get());
  for (const FieldSpec& field : schema.fields) {
    auto entry = std::make_unique<wire::FieldInfoT>();
    entry->name = field.name;
    entry->kind = field.kind;
    entry->dtype = cast_dtype(settings().casts, field);
    entry->shape = field.shape;
    entry->categories = field.categories;
    info.fields.push_back(std::move(entry));
  }
  return info;
}

const Arena* Feed::find_arena(ArenaNumber number) const {
  for (const auto& generation : parts().scheduler.generations()) {
    if (generation->number == number) return generation->arena.get();
  }
  return nullptr;
}

}  // namespace batchwright
