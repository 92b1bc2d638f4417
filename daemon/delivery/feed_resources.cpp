#include "daemon/delivery/feed_resources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace batchwright {
namespace {

Result<void> open_files(const FeedSettings& settings, FeedResources& resources) {
  if (!settings.journal.empty()) {
    auto journal =
        QueueJournal::open(settings.journal.string(), resources.first_epoch.source->fingerprint,
                           settings.follow, resources.queue);
    if (!journal) return journal.error();
    resources.journal = std::move(*journal);
  }
  if (settings.ledger.empty()) return {};
  auto ledger = Ledger::open(settings.ledger.string(), settings.name);
  if (!ledger) return ledger.error();
  resources.ledger = std::move(*ledger);
  return {};
}

}  // namespace

std::uint64_t whole_pages(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Result<std::size_t> feed_slot_bytes(const Snapshot& snapshot, const FeedSettings& settings) {
  const auto bound = plan_bound(snapshot.lengths(), settings.plan, snapshot.shard_sequences());
  if (!bound) return bound.error();
  return slot_bytes_for(
      snapshot, {settings.name, settings.layout, settings.padding_value, settings.on_corrupt},
      *bound);
}

Result<FeedResources> prepare_feed(std::shared_ptr<Dataset> dataset, const FeedSettings& settings,
                                   std::uint64_t memory_bytes, const std::stop_token& stop) {
  auto snapshot = dataset->snapshot();
  if (!snapshot) return snapshot.error();
  if ((*snapshot)->sequences() == 0) {
    return Error{ErrorCode::infeasible, "the dataset has no sequences"};
  }
  const auto slot_bytes = feed_slot_bytes(**snapshot, settings);
  if (!slot_bytes) return slot_bytes.error();
  auto first = plan_snapshot(*snapshot, settings.plan, Epoch{0});
  if (!first) return first.error();
  const std::uint64_t needed = whole_pages(*slot_bytes) * settings.slots;
  if (needed > memory_bytes) {
    return Error{
        ErrorCode::does_not_fit,
        fmt::format("its arena needs {} bytes ({} slots of {} bytes), the memory ceiling "
                    "leaves {} bytes; {} slots would fit",
                    needed, settings.slots, *slot_bytes, memory_bytes, memory_bytes / *slot_bytes)};
  }
  auto arena = Arena::create(settings.slots, *slot_bytes, stop);
  if (!arena) return arena.error();
  FeedResources resources;
  resources.snapshot = std::move(*snapshot);
  resources.first_epoch = std::move(*first);
  resources.arena = std::move(*arena);
  resources.dataset = std::move(dataset);
  if (auto opened = open_files(settings, resources); !opened) return opened.error();
  return resources;
}

}  // namespace batchwright
