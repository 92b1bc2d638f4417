#include "tests/simulation/daemon/feed_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

#include "tests/simulation/daemon/daemon.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::array<Duration, 4> kLongestAssembly = {milliseconds(1), milliseconds(5),
                                                      milliseconds(40), milliseconds(300)};

}  // namespace

std::shared_ptr<SlotGeneration> FeedHost::make_slots(Machine& machine, ArenaNumber number,
                                                     std::size_t slot_bytes) {
  auto arena = Arena::create(machine.settings.slots, slot_bytes, HugePages::off);
  if (!arena) throw Violation(arena.error().message);
  machine.slots.arena_made(**arena);
  return std::make_shared<SlotGeneration>(number, std::move(*arena),
                                          std::make_shared<MemoryBudget>());
}

Machine::Machine(World& world, FeedSettings feed, std::uint32_t sequences,
                 const std::string& folder)
    : settings(std::move(feed)),
      data(settings.plan, sequences),
      disk(world, folder),
      slots(world, data),
      records(world, data, settings.journal.empty() ? "" : disk.journal().string(),
              settings.ledger.empty() ? "" : disk.ledger().string()) {
  if (!settings.journal.empty()) settings.journal = disk.journal();
  if (!settings.ledger.empty()) settings.ledger = disk.ledger();
  if (settings.live && !settings.live->spool.empty()) settings.live->spool = disk.spool();
  if (settings.live) live.emplace(world, settings.live->pool);
}

Result<std::unique_ptr<FeedHost>> FeedHost::open(World& world, Daemon& daemon, Machine& machine,
                                                 ArenaNumber number) {
  if (machine.data_away) return Error{ErrorCode::store_unavailable, "its folder is away"};
  const FeedSettings& settings = machine.settings;
  if (settings.live) return open_live(world, daemon, machine, number);
  const Data::Version& version = machine.data.newest();
  WorkQueue queue;
  std::optional<JournalState> journal;
  std::optional<std::string> ledger;
  RecordFiles files;
  files.sync = [&machine](int file) { return machine.disk.sync(file); };
  const auto opened = machine.disk.when_full_or_not([&]() -> Result<void> {
    if (!settings.journal.empty()) {
      auto made = open_journal(settings.journal.string(), Data::fingerprint_of(version),
                               settings.follow, queue, files.sync);
      if (!made) return made.error();
      journal = std::move(made->state);
      files.journal = std::move(made->file);
    }
    if (settings.ledger.empty()) return {};
    auto made = open_ledger(settings.ledger.string());
    if (!made) return made.error();
    ledger = settings.name;
    files.ledger = std::move(*made);
    return {};
  });
  if (!opened) return opened.error();
  machine.records.opened(std::exchange(machine.power_lost, false));
  const auto since = std::chrono::duration_cast<microseconds>(world.passed()).count();
  QueueService desk(std::move(queue), std::move(journal), std::move(ledger),
                    {static_cast<std::uint64_t>(since) + 1});
  const SchedulerLimits limits{settings.assembly_threads, settings.patience};
  std::unique_ptr<FeedHost> host(new FeedHost(world, daemon, machine, std::move(files)));
  host->content_ = version.content;
  host->core_ = std::make_unique<FeedCore>(
      FeedParts{settings, make_slots(machine, number, version.slot_bytes), limits, std::move(desk),
                Epoch{0}, version.lengths.size()},
      machine.data.plan(version, Epoch{0}), Data::facts_of(version));
  host->tell(Started{});
  return host;
}

FeedHost::~FeedHost() { mark(); }

/// Before the core hears of it.
void FeedHost::witness(const FeedEvent& event) {
  if (const auto* released = std::get_if<Released>(&event)) {
    if (!is_live()) machine_.records.released(*core_, *released);
    if (released->leases.size() > 1) world_.sometimes(Mark::releases_joined);
    if (released->keeps && !released->undone) world_.sometimes(Mark::done_while_held);
  }
  if (const auto* request = std::get_if<SubscribeRequested>(&event)) {
    if (!is_live()) machine_.records.claimed(*core_, *request);
  }
  if (!is_live() || core_->parts().life.has_ended()) return;
  const LiveService& desk = *core_->parts().live;
  if (const auto* asked = std::get_if<LiveAsked>(&event)) {
    machine_.live->asked(desk, asked->client.session, asked->asked);
  }
  if (const auto* ended = std::get_if<SessionEnded>(&event)) {
    machine_.live->session_ended(desk, ended->session);
  }
}

void FeedHost::tell(FeedEvent event) {
  witness(event);
  core_->on(std::move(event), world_.now());
  check();
  if (std::exchange(turn_is_due_, true)) return;
  daemon_.post(world_.dice.time(microseconds(1), microseconds(100)), [this] { turn(); });
}

void FeedHost::turn() {
  turn_is_due_ = false;
  while (core_->has_work()) {
    std::vector<FeedAction> actions;
    core_->decide(world_.now(), actions);
    for (const FeedAction& action : actions) {
      std::visit([this](const auto& one) { carry_out(one); }, action);
    }
    check();
  }
}

void FeedHost::check() {
  machine_.slots.check(*core_, sends_);
  if (!is_live()) {
    machine_.records.check(*core_);
  } else if (!core_->parts().life.has_ended()) {
    machine_.live->check(*core_->parts().live, *steps_);
  }
  if (log_.get(Event::feed_broken) != 0) world_.fail(core_->parts().life.why()->message);
}

void FeedHost::carry_out(const Send& action) {
  const auto bytes = std::as_bytes(std::span(action.message.data(), action.message.size()));
  if (action.is_ticket && !is_live()) machine_.records.ticket(*core_, action.session, bytes);
  if (is_live() && !core_->parts().life.has_ended()) {
    if (const auto message = ControlMessage::decode(bytes)) {
      machine_.live->sent(*core_->parts().live, action.session, *message);
    }
  }
  daemon_.send_to_session(action.session, action.message);
}

void FeedHost::carry_out(const SendBatch& action) {
  if (!is_live()) {
    machine_.records.ticket(*core_, action.session,
                            std::as_bytes(std::span(action.ticket.data(), action.ticket.size())));
  }
  const auto sending = sends_.emplace(action.slot.of.get(), action.slot.index);
  auto batch = [slot = action.slot, extent = action.extent] {
    const Arena& memory = *slot.of->arena;
    const std::size_t within = extent.offset - slot.index.value * memory.slot_bytes();
    const auto bytes = memory.slot(slot.index).subspan(within, extent.size);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  auto sent = [this, sending, slot = action.slot, daemon = daemon_.weak_from_this()] {
    const auto alive = daemon.lock();
    if (!alive) return;
    alive->post(Duration::zero(), [this, sending, slot] {
      sends_.erase(sending);
      tell(BatchSent{slot});
    });
  };
  daemon_.send_batch(action.session, action.ticket, std::move(batch), std::move(sent));
}

Duration FeedHost::assembly_time() {
  return world_.dice.time(microseconds(50), kLongestAssembly.at(times_));
}

void FeedHost::carry_out(const Assemble& action) {
  machine_.slots.written(*action.assignment.slot.of->arena, action.assignment.slot.index);
  daemon_.post(assembly_time(), [this, action] {
    const SlotRef& slot = action.assignment.slot;
    machine_.slots.written(*slot.of->arena, slot.index);
    if (machine_.data_away) {
      const Error away{ErrorCode::store_unavailable, "its folder is away"};
      return tell(BatchFailed{action.assignment, action.data, 0, away});
    }
    if (is_live() && !action.batches->live_rows(action.assignment.id.index)) {
      const Error gone{ErrorCode::invalid_argument, "its step is no longer kept"};
      return tell(BatchFailed{action.assignment, action.data, 0, gone});
    }
    auto batch = build(action);
    if (!batch) world_.fail(batch.error().message);
    tell(BatchReady{action.assignment, action.data, 0, std::move(*batch)});
  });
}

/// Its header and its rows' keys; no payload.
Result<AssembledBatch> FeedHost::build(const Assemble& job) const {
  const BatchSource& batches = *job.batches;
  const EpochOutline outline = batches.outline();
  const BatchId& id = job.assignment.id;
  std::vector<Row> rows;
  batches.rows(id.index, rows);
  const auto live = batches.live_rows(id.index);
  if (live && !core_->parts().life.has_ended()) machine_.live->check_bytes(batches, id.index);
  std::vector<std::uint64_t> ordinals;
  std::vector<std::string_view> keys(rows.size(), "key");
  std::vector<std::uint32_t> lengths;
  std::vector<float> weights;
  for (const Row& row : rows) {
    ordinals.push_back(row.ordinal);
    lengths.push_back(row.length);
    if (live) weights.push_back(row.weight);
  }
  const BatchFigures figures = batches.figures(id.index);
  BatchSpec spec;
  spec.feed = machine_.settings.name;
  spec.epoch = id.epoch;
  spec.step = Step{id.index.value / outline.world};
  spec.index = id.index;
  spec.world = outline.world;
  spec.fingerprint = outline.fingerprint;
  spec.batch_length = figures.batch_length;
  spec.ordinals = ordinals;
  spec.keys = keys;
  spec.lengths = lengths;
  spec.batch_frames = figures.frames;
  spec.live = live.get();
  spec.weights = weights;
  const SlotRef& slot = job.assignment.slot;
  const auto laid = lay_out_batch(spec, slot.of->arena->slot(slot.index));
  if (!laid) return laid.error();
  AssembledBatch batch;
  batch.offset = laid->offset;
  batch.size = laid->size;
  batch.rows = figures.rows;
  batch.frames = figures.frames;
  return batch;
}

void FeedHost::carry_out(const MakePlan& action) {
  const std::uint64_t content =
      action.data.value_or(machine_.settings.follow ? machine_.data.newest().content : content_);
  daemon_.post(world_.dice.time(microseconds(100), milliseconds(200)),
               [this, action, content] { planned(action, content); });
}

/// As in Feed::grown().
void FeedHost::planned(const MakePlan& asked, std::uint64_t content) {
  if (core_->is_outdated(asked.epoch, content)) return tell(PlanOutdated{asked.epoch});
  if (machine_.data_away || world_.dice.percent(machine_.plan_failures)) {
    world_.sometimes(Mark::plan_failed);
    return tell(PlanFailed{asked.epoch, {ErrorCode::store_unavailable, "its folder is away"}});
  }
  const Data::Version& version = *machine_.data.find(content);
  PlanReady ready{machine_.data.plan(version, asked.epoch), {}, {}, {}};
  const SlotGeneration& slots = *core_->parts().scheduler.slots();
  if (version.slot_bytes > slots.arena->slot_bytes()) {
    world_.sometimes(Mark::arena_grown);
    ready.slots = make_slots(machine_, *slots.number.next(), version.slot_bytes);
  }
  if (content > content_) {
    world_.sometimes(Mark::data_grown);
    content_ = content;
    ready.facts = Data::facts_of(version);
  }
  tell(std::move(ready));
}

void FeedHost::write(Disk::Work work) {
  writing_.push_back(std::move(work));
  if (writing_.size() == 1) write_next();
}

/// Mostly at once; sometimes the disk is slow, and in some runs often.
void FeedHost::write_next() {
  const bool slow = world_.dice.percent(times_ == 3 ? 40 : 2);
  const Duration most = slow ? Duration(milliseconds(500)) : Duration(milliseconds(2));
  daemon_.post(world_.dice.time(microseconds(5), most), [this] {
    const Written written = machine_.disk.carry_out(writing_.front());
    writing_.pop_front();
    if (!is_live()) machine_.records.files_changed();
    if (!writing_.empty()) write_next();
    daemon_.post(world_.dice.time(microseconds(1), microseconds(200)),
                 [this, written] { tell(records_.told(written)); });
  });
}

void FeedHost::die() {
  if (!writing_.empty() && world_.dice.percent(50)) machine_.disk.tear(writing_.front());
}

void FeedHost::carry_out(const SetTimer& action) {
  const std::uint64_t setting = timers_[action.timer] = ++settings_of_timers_;
  const Duration left = std::max(action.when - world_.now(), Duration::zero());
  daemon_.post(left, [this, timer = action.timer, setting] {
    if (timers_[timer] == setting) tell(TimerDue{timer});
  });
}

void FeedHost::carry_out(const Poison& action) {
  daemon_.post(world_.dice.time(microseconds(1), milliseconds(1)), [this, slot = action.slot] {
    machine_.slots.written(*slot.of->arena, slot.index);
    const auto bytes = slot.of->arena->slot(slot.index);
    std::memset(bytes.data(), 0xDB, bytes.size());
    tell(SlotPoisoned{slot});
  });
}

void FeedHost::carry_out(const Failed& action) {
  if (!daemon_.takes_over(action.code)) world_.fail(core_->parts().life.why()->message);
}

const Arena* FeedHost::find_arena(ArenaNumber number) const {
  for (const auto& generation : core_->parts().scheduler.generations()) {
    if (generation->number == number) return generation->arena.get();
  }
  return nullptr;
}

/// What the core counts of itself.
void FeedHost::mark() const {
  const auto mark = [this](bool reached, Mark as) {
    if (reached) world_.sometimes(as);
  };
  const FeedCounters& counters = core_->counters();
  mark(counters.get(FeedCounter::batches_reassembled) != 0, Mark::batch_again);
  mark(counters.get(FeedCounter::batches_shared) != 0, Mark::batch_shared);
  mark(counters.get(FeedCounter::releases_unknown) != 0, Mark::release_unknown);
  mark(counters.get(FeedCounter::queue_returns) != 0, Mark::undone_returned);
  mark(counters.get(FeedCounter::queue_set_aside) != 0, Mark::set_aside);
  mark(log_.get(Event::left_behind) != 0, Mark::left_behind);
  mark(log_.get(Event::long_wait) != 0, Mark::long_wait);
  mark(log_.get(Event::queue_epoch_done) != 0, Mark::journal_begun);
  mark(log_.get(Event::queue_resumed) != 0, Mark::queue_resumed);
  mark(log_.get(Event::journal_lost) != 0, Mark::journal_lost);
}

}  // namespace batchwright::simulation
