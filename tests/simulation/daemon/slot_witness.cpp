#include "tests/simulation/daemon/slot_witness.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <vector>

namespace batchwright::simulation {
namespace {

std::uint64_t file_of(int descriptor) {
  struct stat status {};
  ::fstat(descriptor, &status);
  return status.st_ino;
}

/// What the table has counted is so of its subscriptions.
bool counts_are_right(const SubscriptionTable& table) {
  std::optional<Position> slowest;
  bool is_any_short = false;
  std::size_t placed = 0;
  std::size_t wanting = 0;
  for (const auto& [key, one] : table.all()) {
    is_any_short = is_any_short || one.is_short();
    if (one.index.admission && one.index.admission->wants) ++wanting;
    if (!one.is_served()) continue;
    ++placed;
    const Position here{one.cursor.epoch(), one.cursor.step()};
    if (!one.in_queue()) slowest = slowest ? std::min(*slowest, here) : here;
  }
  for (const auto& [place, members] : table.places()) placed -= members.size();
  for (const auto& [id, all] : table.admission().wanted()) wanting -= all.all.size();
  return table.any_short() == is_any_short && table.slowest() == slowest && placed == 0 &&
         wanting == 0;
}

}  // namespace

void SlotWitness::arena_made(const Arena& arena) {
  slot_bytes_[file_of(arena.descriptor())] = arena.slot_bytes();
}

void SlotWitness::arena_mapped(const std::byte* mapping, int descriptor) {
  mapped_[mapping] = file_of(descriptor);
}

SlotWitness::Place SlotWitness::place_of(const Holding& batch) const {
  const std::uint64_t file = mapped_.at(batch.mapping);
  const auto* content = reinterpret_cast<const std::byte*>(batch.content);
  const auto offset = static_cast<std::size_t>(content - batch.mapping);
  return {file, offset / slot_bytes_.at(file)};
}

void SlotWitness::written(const Arena& arena, SlotIndex slot) const {
  if (held_.contains({file_of(arena.descriptor()), slot.value})) {
    world_.fail(fmt::format("slot {} is written while a program holds its batch", slot.value));
  }
}

void SlotWitness::taken(const Holding& batch) {
  if (batch.mapping != nullptr) ++held_[place_of(batch)];
}

void SlotWitness::let_go(const Holding& batch) {
  if (batch.mapping == nullptr) return;
  const auto found = held_.find(place_of(batch));
  if (--found->second == 0) held_.erase(found);
}

void SlotWitness::check_content(const Holding& batch) const {
  const wire::Batch& content = *batch.content;
  const auto* version = data_.find(batch.data);
  if (version == nullptr) world_.fail("a batch is of data that never were");
  std::vector<Row> rows;
  data_.plan(*version, Epoch{batch.epoch}).source->plan.rows(BatchIndex{batch.index}, rows);
  const bool same_place = content.epoch() == batch.epoch && content.index() == batch.index;
  const auto* ordinals = content.ordinals();
  const bool same_rows =
      ordinals->size() == rows.size() &&
      std::equal(rows.begin(), rows.end(), ordinals->begin(),
                 [](const Row& row, std::uint64_t ordinal) { return row.ordinal == ordinal; });
  if (same_place && same_rows) return;
  world_.fail(fmt::format("the batch {} of epoch {} has the bytes of batch {} of epoch {}",
                          batch.index, batch.epoch, content.index(), content.epoch()));
}

void SlotWitness::check(const FeedCore& core, const Sends& sends) const {
  const FeedParts& parts = core.parts();
  if (parts.life.is_retired()) return;
  if (!counts_are_right(parts.subscriptions)) {
    world_.fail("the table's counts are not those of its subscriptions");
  }
  std::set<std::pair<const SlotGeneration*, SlotIndex>> counted(sends.begin(), sends.end());
  std::size_t uncounted = parts.subscriptions.orphaned().slots();
  for (const auto& [key, one] : parts.subscriptions.all()) {
    if (one.leases.size() > one.terms.window) {
      world_.fail(fmt::format("a subscription has {} leases, and a window of {}", one.leases.size(),
                              one.terms.window));
    }
    if (one.blocked_by == BlockedBy::slots) world_.sometimes(Mark::slots_blocked);
    if (one.blocked_by == BlockedBy::lead) world_.sometimes(Mark::lead_held_back);
    for (const auto& [lease, batch] : one.leases) {
      if (!parts.sends.has_written(batch.record)) {
        world_.sometimes(Mark::ticket_held_for_record);
      }
      if (batch.slot) counted.emplace(batch.slot->of.get(), batch.slot->index);
      if (!batch.slot && one.client.inline_batches) ++uncounted;  // it may wait for its record
    }
  }
  std::size_t held = 0;
  for (const auto& generation : parts.scheduler.generations()) held += generation->cache.held();
  for (const auto& [generation, slot] : counted) {
    if (generation->cache.is_held(slot)) continue;
    world_.fail(fmt::format("slot {} has a lease, and is not held", slot.value));
  }
  if (core.has_work()) return;  // what is to be sent next may have no lease any more
  // The same goes for what waits for its record.
  if (!parts.sends.has_written(parts.desk.last_record())) return;
  if (held > counted.size() + uncounted) {
    world_.fail(fmt::format("{} slots are held, and {} leases account for them", held,
                            counted.size() + uncounted));
  }
}

}  // namespace batchwright::simulation
