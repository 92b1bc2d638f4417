#include <utility>

#include "tests/simulation/daemon/daemon.h"
#include "tests/simulation/daemon/feed_host.h"

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What most batches take; for others slots grow.
constexpr std::size_t kFirstSlotBytes = 16 * 1024;
/// As Feed has it.
constexpr std::uint64_t kAreasToPool = 4;

}  // namespace

Result<std::unique_ptr<FeedHost>> FeedHost::open_live(World& world, Daemon& daemon,
                                                      Machine& machine, ArenaNumber number) {
  const FeedSettings& settings = machine.settings;
  Fingerprint fingerprint{world.dice.bits() | 1U, 2, 3};
  RecordFiles files;
  WorkQueue queue;
  LeaseNumber next_lease;
  std::optional<SpooledFeed> spooled;
  if (!settings.live->spool.empty()) {
    auto opened =
        machine.disk.when_full_or_not([&] { return Spool::open(settings, fingerprint.data); });
    if (!opened) return opened.error();
    spooled = std::move(opened->feed);
    fingerprint.data = spooled->incarnation;
    files.spool = std::move(opened->spool);
    queue = std::move(opened->queue);
    next_lease = opened->next_lease;
  }
  machine.live->begin(fingerprint.data, spooled ? &*spooled : nullptr);
  std::unique_ptr<FeedHost> host(new FeedHost(world, daemon, machine, std::move(files)));
  host->steps_ = std::make_shared<LiveSource>(settings.live->schema, fingerprint,
                                              static_cast<std::uint32_t>(settings.plan.world));
  host->areas_.emplace(number, kAreasToPool * settings.live->pool.pool_bytes);
  const auto since = std::chrono::duration_cast<microseconds>(world.passed()).count();
  QueueService desk(std::move(queue), JournalState{"", fingerprint, next_lease, 0, 0}, {},
                    {static_cast<std::uint64_t>(since) + 1});
  FeedParts parts{settings,
                  make_slots(machine, number, kFirstSlotBytes),
                  SchedulerLimits{settings.assembly_threads, settings.patience},
                  std::move(desk),
                  Epoch{0},
                  0};
  parts.live = std::make_unique<LiveService>(settings, fingerprint.data, host->steps_, world.now(),
                                             spooled ? &*spooled : nullptr);
  parts.live->set_slot_bytes(parts.scheduler.slots()->arena->slot_bytes());
  DataFacts facts;
  facts.fingerprint = fingerprint;
  host->core_ = std::make_unique<FeedCore>(
      std::move(parts), PlannedEpoch{nullptr, host->steps_, {}, {}, 0.0}, std::move(facts));
  host->tell(Started{});
  return host;
}

wire::FeedInfoT FeedHost::info() const {
  const LiveFeedSettings& live = *machine_.settings.live;
  wire::FeedInfoT info;
  info.name = machine_.settings.name;
  info.world = machine_.settings.plan.world;
  info.live = std::make_unique<wire::LiveInfoT>();
  info.live->max_length = static_cast<std::uint32_t>(live.pool.max_length);
  info.live->max_bytes = live.pool.pool_bytes;
  for (const FieldSpec& field : live.schema.fields) {
    auto entry = std::make_unique<wire::FieldInfoT>();
    entry->name = field.name;
    entry->kind = field.kind;
    entry->dtype = field.dtype;
    entry->shape = field.shape;
    info.fields.push_back(std::move(entry));
  }
  return info;
}

void FeedHost::produce(const ClientInfo& client, const wire::Produce& request) {
  ProduceAsked asked;
  request.UnPackTo(&asked.request);
  if (!client.inline_batches && asked.request.area_bytes != 0) {
    if (const auto given = areas_->give(client.session, asked.request.area_bytes)) {
      asked.area = {given->area->bytes(), given->area};
      asked.number = given->number;
    }
  }
  tell(LiveAsked{client, std::move(asked)});
}

void FeedHost::push(const ClientInfo& client, const wire::Push& push,
                    std::span<const std::byte> frame) {
  tell(LiveAsked{client, to_push_asked(push, frame)});
}

bool FeedHost::has_producer(const ProducerKey& key) const {
  return is_live() && core_->parts().live->producers().connected().contains(key);
}

bool FeedHost::forget_producers(SessionId session) {
  if (!is_live()) return false;
  areas_->forget(session);
  return core_->parts().live->has_session(session);
}

void FeedHost::carry_out(const GrowSlots& action) {
  daemon_.post(world_.dice.time(microseconds(100), milliseconds(100)),
               [this, bytes = action.slot_bytes + action.slot_bytes / 4] {
                 world_.sometimes(Mark::live_slots_grown);
                 const SlotGeneration& slots = *core_->parts().scheduler.slots();
                 tell(SlotsGrown{make_slots(machine_, *slots.number.next(), bytes)});
               });
}

}  // namespace batchwright::simulation
