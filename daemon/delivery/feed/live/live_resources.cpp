// What a live feed takes before the loop runs.

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "daemon/delivery/feed/feed_resources.h"

namespace batchwright {
namespace {

/// A guess of what a batch takes: slots grow where one takes more.
constexpr std::uint64_t kMostGuessed = std::uint64_t{64} << 20;
constexpr std::uint64_t kKeyBytes = 64;
constexpr std::uint64_t kMembers = 8;  ///< Of a group.
constexpr std::uint64_t kMostRows = 65'536;

struct Guess {
  std::uint64_t rows = 0;
  std::uint64_t frames = 0;  ///< Padding included.
};

Guess guess(const LiveSettings& pool) {
  const std::uint64_t share = (pool.step + pool.world - 1) / pool.world;
  const std::uint64_t longest = std::max<std::uint64_t>(pool.max_length, 1);
  switch (pool.step_unit) {
    case StepUnit::frames: return {std::min(share, kMostRows), share + longest};
    case StepUnit::groups: return {share * kMembers, share * kMembers * longest};
    case StepUnit::lanes: return {share, share * pool.unroll};
    case StepUnit::sequences: break;
  }
  return {share, share * longest};
}

std::uint64_t new_incarnation() {
  std::random_device device;
  const std::uint64_t drawn = std::uint64_t{device()} << 32U | device();
  return drawn != 0 ? drawn : 1;
}

}  // namespace

Result<FeedNeeds> live_feed_needs(const FeedSettings& settings) {
  const LiveFeedSettings& live = *settings.live;
  if (auto sound = check_casts(settings.casts, live.schema); !sound) return sound.error();
  const Schema schema = cast_schema(settings.casts, live.schema);
  if (auto sound = check_padding(settings.padding, schema); !sound) return sound.error();
  const Guess batch = guess(live.pool);
  BatchBound bound{batch.rows, batch.rows * kKeyBytes, 0, schema.fields.size(),
                   settings.name.size()};
  bound.live = true;
  for (const FieldSpec& field : schema.fields) {
    const std::uint64_t frames = field.kind == FieldKind::scalar ? batch.rows : batch.frames;
    bound.payload_bytes += std::min(frames * frame_bytes(field), kMostGuessed);
    bound.name_bytes += field.name.size();
  }
  const std::uint64_t bytes = std::min(batch_bytes_bound(bound), kMostGuessed);
  const std::uint32_t slots =
      settings.slots != 0 ? settings.slots : std::max<std::uint32_t>(2, settings.plan.world + 1);
  return FeedNeeds{slots, static_cast<std::size_t>(whole_pages(bytes)), live.pool.pool_bytes};
}

Result<FeedResources> make_live_resources(const FeedSettings& settings, const FeedNeeds& needs,
                                          const std::stop_token& stop) {
  auto arena = Arena::create(needs.slots, needs.slot_bytes, settings.huge_pages, stop);
  if (!arena) return arena.error();
  FeedResources resources;
  std::uint64_t incarnation = new_incarnation();
  LeaseNumber next_lease = {};
  if (!settings.live->spool.empty()) {
    auto opened = Spool::open(settings, incarnation);
    if (!opened) return Error{opened.error().code, "live.spool: " + opened.error().message};
    resources.files.spool = std::move(opened->spool);
    resources.spooled = std::make_unique<SpooledFeed>(std::move(opened->feed));
    resources.queue = std::move(opened->queue);
    next_lease = opened->next_lease;
    incarnation = resources.spooled->incarnation;
  }
  const Fingerprint fingerprint = fingerprint_of_live(settings, incarnation);
  FeedData& data = resources.data;
  const bool has_parts = settings.live->pool.step_unit == StepUnit::lanes;
  data.live = std::make_shared<LiveSource>(settings.live->schema, fingerprint, settings.plan.world,
                                           has_parts);
  data.first_epoch = {nullptr, data.live, {}, {}, 0.0};
  data.few_slots = about_slots(settings, needs.slots);
  resources.arena = std::move(*arena);
  // Its queue is as long as its pool: its spool has it, or no file.
  resources.journal = JournalState{"", fingerprint, next_lease, 0, 0};
  if (!settings.ledger.empty()) {
    auto ledger = open_ledger(settings.ledger.string());
    if (!ledger) return ledger.error();
    resources.files.ledger = std::move(*ledger);
  }
  if (!settings.live->record.empty()) {
    auto record =
        StepRecord::open(settings.live->record, settings.live->schema, settings.plan.world);
    if (!record) return Error{record.error().code, "live.record: " + record.error().message};
    resources.files.record = std::move(*record);
  }
  return resources;
}

Result<FeedResources> prepare_live_feed(const FeedSettings& settings, std::uint64_t memory_bytes,
                                        const std::stop_token& stop) {
  auto needs = live_feed_needs(settings);
  if (!needs) return needs.error();
  if (auto fits = choose_slots(settings, memory_bytes, *needs); !fits) return fits.error();
  return make_live_resources(settings, *needs, stop);
}

}  // namespace batchwright
